"""Quantisation layout: which tensor class a checkpoint stores in which format, and what that weighs."""

from __future__ import annotations

from dataclasses import dataclass, field

from nemolab.models.parameters import Parameters, TensorClass

# Sixteenths of a byte per element, so that sizes stay exact integers. NVFP4 is 4 bits plus one e4m3 scale for 16
# elements; scales per tensor (two float32) are too few to count.
FORMATS: dict[str, int] = {"fp32": 64, "bf16": 32, "fp16": 32, "fp8": 16, "nvfp4": 9}


@dataclass(frozen=True, slots=True)
class Layout:
    """Formats of a checkpoint.

    Attributes:
        default: format of every class that `formats` does not name.
        mtp: format of all MTP tensors.
        kv_cache: format that the checkpoint brings KV scales for; "" when it brings none.
        weight_only: NVFP4 weights are multiplied as 16-bit values (W4A16) even where the GPU could do W4A4.
        estimate: the class-by-class layout was not seen; another checkpoint's recipe is assumed.
    """

    default: str = "bf16"
    formats: dict[TensorClass, str] = field(default_factory=dict)
    mtp: str = "bf16"
    kv_cache: str = ""
    weight_only: bool = False
    estimate: bool = False

    def format_of(self, name: TensorClass, *, mtp: bool = False) -> str:
        """Format of a tensor class. Router biases are float32 everywhere."""
        if name is TensorClass.ROUTER_BIAS:
            return "fp32"
        return self.mtp if mtp else self.formats.get(name, self.default)

    def size(self, params: Parameters, *, mtp: bool = True) -> int:
        """Bytes of a checkpoint's tensors."""
        sixteenths = sum(n * FORMATS[self.format_of(name)] for name, n in params.backbone.items())
        if mtp:
            sixteenths += sum(n * FORMATS[self.format_of(name, mtp=True)] for name, n in params.mtp.items())
        return -(-sixteenths // 16)


BF16 = Layout()

_T = TensorClass

# Ultra, technical report table 12: experts NVFP4; shared experts and Mamba projections FP8; attention, latent
# projections, embeddings, head, router, convolution and MTP BF16; KV cache FP8.
ULTRA_NVFP4 = Layout(
    formats={_T.ROUTED_EXPERTS: "nvfp4", _T.SHARED_EXPERTS: "fp8", _T.MAMBA_PROJ: "fp8"}, kv_cache="fp8"
)
# Lightning, hf_quant_config.json: 5,935 weight-only NVFP4 layers and 46 FP8. 2 x 23 x 128 routed and 2 x 23 shared
# projections and the head make 5,935; in_proj and out_proj of 23 Mamba layers make 46.
LIGHTNING_NVFP4 = Layout(
    formats={
        _T.ROUTED_EXPERTS: "nvfp4",
        _T.SHARED_EXPERTS: "nvfp4",
        _T.LM_HEAD: "nvfp4",
        _T.MAMBA_PROJ: "fp8",
    },
    kv_cache="fp8",
    weight_only=True,
)
ASSUMED_NVFP4 = Layout(formats=ULTRA_NVFP4.formats, kv_cache="fp8", estimate=True)
ASSUMED_FP8 = Layout(
    formats={_T.ROUTED_EXPERTS: "fp8", _T.SHARED_EXPERTS: "fp8", _T.MAMBA_PROJ: "fp8"}, kv_cache="fp8", estimate=True
)

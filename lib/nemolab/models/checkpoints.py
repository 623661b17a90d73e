"""The checkpoints: facts as data, each with its source. Read by `catalogue`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nemolab.models import config
from nemolab.models.evidence import (
    AIC,
    CARD,
    COOK,
    H200,
    MB,
    NIM,
    REC,
    REPORT,
    SGL,
    TRT,
    Disagreement,
    Evidence,
    Source,
)
from nemolab.models.families import LIGHTNING, NANO, NATIVE, SUPER, ULTRA
from nemolab.models.layout import ASSUMED_FP8, ASSUMED_NVFP4, BF16, LIGHTNING_NVFP4, ULTRA_NVFP4
from nemolab.models.model import Model

# Found as a folder, because importing nemolab.miniature would load numpy and gguf.
MINIATURE = Path(__file__).parents[1] / "miniature" / "weights"

_CONFIG = Source("architecture", AIC, Evidence.CODE)
_GATED = Disagreement(
    "is the checkpoint gated",
    (("no token needed", COOK), ("HF_TOKEN set in every manifest", "ai-dynamo/dynamo recipes")),
)
_PUBLISHED = Source(
    "560,524,578,816 parameters; the formula's 560,524,603,904 also counts 49 x 512 router correction biases",
    "metadata of a sister checkpoint on Hugging Face, 2026-08",
    Evidence.THIRD_PARTY,
)
_SSM = Disagreement(
    "type of the SSM state",
    (
        ("float32", f"{REC}; {COOK}, BF16"),
        ("float16 with stochastic rounding", f"{COOK}, NVFP4; {CARD}; {TRT}"),
        ("bfloat16 without stochastic rounding", "Dynamo 1.4.0 recipes"),
    ),
    "float16 with stochastic rounding is neutral in NVIDIA's ablation, round-to-nearest costs 2.32 %; bfloat16 is in "
    "no table",
)

_ULTRA = Model(
    name="ultra-bf16",
    repo="nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
    family="ultra",
    precision="bf16",
    architecture=ULTRA,
    licence="OpenMDW-1.1",
    released="2026-06-04",
    published_parameters=560_524_578_816,
    reasoning_plugin="ultra_v3_reasoning_parser.py",
    engines={"vllm": "0.22.0", "sglang": "0.5.12.post1", "trtllm": "1.3.0rc17"},
    sources=(_CONFIG, _PUBLISHED, Source("licence", CARD, Evidence.THIRD_PARTY)),
    disagreements=(
        _GATED,
        _SSM,
        Disagreement(
            "does BF16 fit on 8 x H200",
            (("yes", f"{COOK}; {CARD}; {NIM}"), ("no, 16 x H200", SGL)),
            "weights alone exceed 0.90 of the memory",
        ),
        Disagreement(
            "MTP depth",
            (
                ("5", f"{CARD}; {COOK}"),
                ("3", f"{SGL}; {TRT}"),
                ("1", "Dynamo day-0 recipe"),
                ("none at 1M", "Dynamo 1.4.0"),
            ),
            "best draft length in the report: 6",
        ),
    ),
)

_SUPER = Model(
    name="super-bf16",
    repo="nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16",
    family="super",
    precision="bf16",
    architecture=SUPER,
    licence="NVIDIA Nemotron Open Model License",
    reasoning_plugin="super_v3_reasoning_parser.py",
    engines={"vllm": "0.17.1", "sglang": "0.5.9", "trtllm": "1.3.0rc4"},
    notes=("the original config.json holds the bare token Infinity (time_step_limit)",),
    sources=(
        _CONFIG,
        Source("licence", "terms that Cloudflare's model page links, read 2026-11", Evidence.THIRD_PARTY),
    ),
    disagreements=(_GATED,),
)

_NANO = Model(
    name="nano-bf16",
    repo="nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    family="nano",
    precision="bf16",
    architecture=NANO,
    reasoning_plugin="nano_v3_reasoning_parser.py",
    engines={"vllm": "0.12.0", "trtllm": "1.3.0rc0"},
    sources=(_CONFIG, Source("58.92 GiB of weights after loading", H200, Evidence.MEASURED)),
    disagreements=(_GATED,),
)

_LIGHTNING = Model(
    name="lightning-nvfp4",
    repo="nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4",
    family="lightning",
    precision="nvfp4",
    architecture=LIGHTNING,
    layout=LIGHTNING_NVFP4,
    licence="OpenMDW-1.1",
    released="2026-08",
    published_parameters=32_913_266_240,
    engines={"vllm": "0.27.1", "sglang": "0.5.23", "trtllm": "1.3.0rc24"},
    notes=(
        "vLLM 0.27.1 is the first release with the fix for quantised DSpark drafters",
        "NVFP4 weights are weight-only (W4A16), also on Blackwell",
    ),
    sources=(
        _CONFIG,
        Source("32,913,266,240 parameters in 6,513 tensors", f"{MB}, verification card", Evidence.CODE),
        Source(
            "5,935 W4A16 NVFP4 and 46 FP8 layers, modelopt 0.44.0rc5", f"{AIC}, hf_quant_config.json", Evidence.CODE
        ),
        Source("21.6 GB; the layout gives 21.5 GB", "two community deployment guides, 2026-08", Evidence.THIRD_PARTY),
    ),
    disagreements=(
        _GATED,
        Disagreement("licence", (("other", "one host's listing"), ("OpenMDW-1.1", "community catalogues, 2026-08"))),
        Disagreement(
            "is Lightning a latent MoE",
            (("yes", "NVIDIA's Lightning guide and NIM page"), ("no", f"config.json, {AIC}")),
            "moe_latent_size is null, and only without latent projections is the parameter count right",
        ),
    ),
)


def _drafter(kind: str, size: int | None) -> Model:
    return Model(
        name=f"lightning-{kind.lower()}",
        repo=f"nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4-{kind}",
        family="drafter",
        precision="nvfp4",
        architecture=None,
        released="2026-08",
        published_bytes=size,
        drafter_of=("lightning-nvfp4", "lightning-bf16"),
        engines={"vllm": "0.27.1"},
        notes=("its config.json was not seen; with the BF16 target it is used in SGLang",),
        sources=(Source("repository name and use", COOK, Evidence.CODE),)
        + ((Source("size", "a community deployment guide, 2026-08", Evidence.THIRD_PARTY),) if size else ()),
    )


def _teacher(subject: str) -> Model:
    return replace(
        _ULTRA,
        name=f"teacher-{subject.lower()}",
        repo=f"nvidia/NVIDIA-Nemotron-Labs-Teacher-{subject}",
        family="teacher",
        released="2026-08-14",
        revisions={},
        engines={},
        notes=("BF16 only, about 1,121 GB: hardware minima for NVFP4 do not apply",),
        sources=(
            Source("560.5B parameters, BF16, 262,144 positions", "repository metadata, 2026-08", Evidence.THIRD_PARTY),
            replace(_CONFIG, what="architecture, taken to be Ultra's", evidence=Evidence.THIRD_PARTY),
        ),
        disagreements=(
            Disagreement(
                "least hardware",
                (("4 x B200 or 8 x H100", "card of Teacher-STEM"),),
                "BF16 needs 1,044 GiB; 4 x B200 have 713 and 8 x H100 have 633",
            ),
        ),
    )


ALL: tuple[Model, ...] = (
    replace(
        _ULTRA,
        name="ultra-nvfp4",
        repo="nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4",
        precision="nvfp4",
        layout=ULTRA_NVFP4,
        published_bytes=None,
        revisions={
            "252a02f921642313abde19b29a723a16602fe25e": "community runbook for 2 x HGX B300, 2026-09-29",
            "de9a6761980f24b8d05a3db1017784c43fcacf38": "log in vllm-project/recipes#509, 2026-06-03",
        },
        sources=(
            _CONFIG,
            _PUBLISHED,
            Source("formats by tensor class, 5.03 bits per element", f"{REPORT}, table 12", Evidence.DOCUMENT),
            Source("352 GB, about 330 GiB", f"{COOK}; {REC}", Evidence.DOCUMENT),
        ),
        disagreements=(
            _GATED,
            _SSM,
            Disagreement(
                "does NVFP4 run on Hopper",
                (("yes", f"{COOK}, vLLM and SGLang; {TRT}, slower; {NIM}"), ("Blackwell only", f"{SGL}; {CARD}")),
                "it fits with TP8; kernels are W4A16, Hopper has no FP4",
            ),
            Disagreement(
                "does NVFP4 fit on 2 x B200",
                (("yes", NIM), ("4 GPUs at least", f"{SGL}; {COOK}; {REC}")),
                "only without MTP, with little room",
            ),
        ),
    ),
    _ULTRA,
    replace(
        _ULTRA,
        name="ultra-base-bf16",
        repo="nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-Base-BF16",
        notes=("base model: no chat, no reasoning parser",),
        reasoning_plugin="",
        sources=(_CONFIG, Source("repository name", COOK, Evidence.CODE)),
    ),
    replace(
        _ULTRA,
        name="ultra-genrm",
        repo="nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-GenRM",
        layout=replace(BF16, estimate=True),
        published_parameters=None,
        reasoning_plugin="",
        engines={},
        notes=("judges answers in text; its precision was not seen, BF16 is assumed",),
        sources=(Source("repository name and use", "NVIDIA NeMo RL and NeMo Gym documentation", Evidence.DOCUMENT),),
        disagreements=(_GATED,),
    ),
    *(
        _teacher(subject)
        for subject in ("STEM", "Chat", "Competition-Coding", "General-Reasoning", "Instruction-Following")
    ),
    _SUPER,
    replace(
        _SUPER,
        name="super-fp8",
        repo="nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
        precision="fp8",
        layout=ASSUMED_FP8,
        notes=(*_SUPER.notes, "the layout by class was not seen: experts and projections are taken to be FP8"),
    ),
    replace(
        _SUPER,
        name="super-nvfp4",
        repo="nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
        precision="nvfp4",
        layout=ASSUMED_NVFP4,
        notes=(*_SUPER.notes, "the layout by class was not seen: Ultra's recipe is assumed"),
        sources=(*_SUPER.sources, Source("NVFP4, KV cache FP8", f"{AIC}, hf_quant_config.json", Evidence.CODE)),
    ),
    _NANO,
    replace(
        _NANO,
        name="nano-fp8",
        repo="nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8",
        precision="fp8",
        layout=ASSUMED_FP8,
        notes=("the layout by class was not seen: experts and projections are taken to be FP8",),
        sources=(_CONFIG,),
    ),
    replace(
        _NANO,
        name="nano-nvfp4",
        repo="nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4",
        precision="nvfp4",
        layout=ASSUMED_NVFP4,
        notes=("the layout by class was not seen: Ultra's recipe is assumed",),
        sources=(_CONFIG, Source("NVFP4, group 16, KV cache FP8", f"{AIC}, hf_quant_config.json", Evidence.CODE)),
    ),
    _LIGHTNING,
    replace(
        _LIGHTNING,
        name="lightning-bf16",
        repo="nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16",
        precision="bf16",
        architecture=replace(LIGHTNING, max_position_embeddings=NATIVE),
        layout=_NANO.layout,
        revisions={"b3caaabed0263651a17dc1f2d4ce97e794f76c44": MB},
        notes=(),
        sources=(
            _CONFIG,
            Source("32,913,266,240 parameters in 6,513 tensors", f"{MB}, verification card", Evidence.CODE),
            Source("262,144 positions: the cookbook sets the long-context switch for BF16 only", COOK, Evidence.GUESS),
        ),
        disagreements=(
            *_LIGHTNING.disagreements,
            Disagreement(
                "native context of the BF16 checkpoint",
                (
                    ("262,144", f"inferred from {COOK}; a community model card"),
                    ("1,048,576", "GGUF made from it, ollama/ollama#17692"),
                ),
            ),
        ),
    ),
    _drafter("DSpark", 1_300_000_000),
    _drafter("DFlash", None),
)


def miniature() -> Model:
    """The lab's own checkpoint, its architecture read from the folder that ships with the library."""
    return Model(
        name="miniature",
        repo="",
        family="miniature",
        precision="bf16",
        architecture=config.read(MINIATURE),
        licence="Apache-2.0",
        engines={"vllm": "0.22.0"},
        notes=("the lab's own: same layer kinds and kernel-facing shapes, about 5 million parameters",),
        sources=(
            Source("architecture", "config.json of the exported checkpoint", Evidence.MEASURED),
            Source("its kind loads and answers at 214,000 tokens", H200, Evidence.MEASURED),
        ),
    )

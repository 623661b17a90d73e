"""Rules on names that do not exist, or no longer do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nemolab.core.finding import Finding, Severity
from nemolab.lint.launch import Script
from nemolab.lint.near import nearest
from nemolab.lint.registry import text_rule
from nemolab.lint.rules.textual import at, line_at

# Names that guides invented: no engine, driver or library has them. Searched in vLLM 0.22.0 and 0.33.0 and SGLang
# 0.5.13 and 0.5.23 source, nvidia-ml-py and public code.
_INVENTED = {
    r"\bMHGSA\b|Multi-Head Grouped Sparse Attention": (
        "the attention of this family is plain grouped-query attention",
        "read config.json",
    ),
    r"\bpreference_score\s*\(|\breward_head\b|return_variance": (
        "no checkpoint of this family has a reward or variance head",
        "judge with the GenRM checkpoint, which writes its scores as text",
    ),
    r"\bnvmlDeviceGetMemoryInfoEx\b|\bNVLINK_MEMORY_BANDWIDTH\b": (
        "no such NVML call or query",
        "nvidia-smi topo -m and nvidia-smi nvlink -s",
    ),
    r"\bStateful ?KV ?Cache\b|\bstateful_kv_cache\b": (
        "SGLang has a radix cache, and a Mamba radix cache for hybrids",
        "measure cached tokens in the usage",
    ),
    r"/tmp/sglang_images\b": ("SGLang keeps images in memory", "remove it"),
    r"\bconvert_hf_to_vllm(\.py)?\b|github\.com/NVIDIA/vllm\b": (
        "no such script or repository: vLLM loads the Hugging Face layout as it is",
        "give the checkpoint folder to vllm serve",
    ),
    r"tensorrt_llm/backend/server\.py": ("no such file", "use trtllm-serve"),
    r"\bnemotron_config_override\b": ("no such file: config.json ships with the weights", "remove it"),
    r"--backend[ =]pd\b": ("no such backend", "use --disaggregation-mode prefill and decode with a router"),
}
# A word of each: the expressions are tried only where one of them occurs.
_WORDS = (
    "MHGSA",
    "Sparse Attention",
    "preference_score",
    "reward_head",
    "return_variance",
    "nvmlDevice",
    "NVLINK_MEMORY",
    "KV",
    "kv_cache",
    "sglang_images",
    "convert_hf",
    "NVIDIA/vllm",
    "tensorrt_llm",
    "config_override",
    "--backend",
)


@text_rule(*_WORDS)
def invented(script: Script) -> Iterator[Finding]:
    for pattern, (what, fix) in _INVENTED.items():
        if match := re.search(pattern, script.text):
            yield at(
                "F-NEVER",
                Severity.ERROR,
                line_at(script.text, match.start()),
                f"{match[0].strip()} does not exist: {what}",
                fix,
                "source of the engines named in the facts searched",
                match[0].strip(),
            )


_REMOVED = {
    r"\bModelRunner(?:Cpp)?\.from_dir\b": (
        "ModelRunner went with the engine backend, and never had a tokenizer",
        "use tensorrt_llm.LLM or trtllm-serve",
    ),
    r"\bAutoModelForSequenceClassification\b[\s\S]*\bonnx\b|torch\.onnx\.export": (
        "language models never went through ONNX here; a patched head would be random",
        "use the checkpoint with trtllm-serve",
    ),
    r"--use-weight-only-int8-quant\b|--inflight-batching\b|--enable-context-fmha\b|--paged-kv-cache\b": (
        "no such switch: in-flight batching and paged KV are always on",
        "use the keys of the options file",
    ),
}


@text_rule("ModelRunner", "onnx", "--use-weight-only", "--inflight", "--enable-context-fmha", "--paged-kv")
def removed(script: Script) -> Iterator[Finding]:
    source = "TensorRT-LLM#15763, #15907, #15918 (removed after 1.3.0rc20, 2026-06-30)"
    for pattern, (what, fix) in _REMOVED.items():
        if match := re.search(pattern, script.text):
            yield at(
                "R-REMOVED",
                Severity.ERROR,
                line_at(script.text, match.start()),
                f"{match[0].split()[0][:60]}: {what}",
                fix,
                source,
                match[0].split()[0][:60],
            )


@text_rule("emotron", "EMOTRON")
def repositories(script: Script) -> Iterator[Finding]:
    """Names of checkpoints outside a launch: in `git clone`, `hf download`, URLs."""
    from nemolab import models

    known = {m.repo.lower() for m in models.entries().values() if m.repo}
    launched = {w.text.lower() for launch in script.launches for w in launch.words}
    found: set[str] = set()
    for match in re.finditer(
        r"(?i)(?:huggingface\.co/|\bhf_hub_download\(|download\s+|repo_id\s*=\s*['\"]|[\"'\s])(nvidia/[\w.-]*nemotron[-_]?3[\w.-]*)",
        script.text,
    ):
        name = match[1].rstrip(".").removesuffix(".git")
        low = name.lower()
        if (
            low in known
            or low in launched
            or low in found
            or re.search(r"omni|vl|genrm|base|embed|rerank|parse|content|asr", low)
            or _image_context(script.text, match.start(1))
        ):
            continue
        if not re.search(r"nemotron-?3(\.5)?", low):
            continue
        found.add(low)

        near = nearest(name, [m.repo for m in models.entries().values() if m.repo], 0.3)
        yield at(
            "R-MODEL",
            Severity.ERROR,
            line_at(script.text, match.start(1)),
            f"{name} is not a published repository of this family",
            f"did you mean {near}?" if near else "nemolab models lists them",
            "catalogue",
            name,
        )


def _image_context(text: str, at: int) -> bool:
    """Whether a name is part of an image reference such as nvcr.io/nim/nvidia/...."""
    return text[max(0, at - 8) : at].endswith(("nim/", "io/"))

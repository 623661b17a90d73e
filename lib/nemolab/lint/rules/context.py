"""R-LONG: lengths beyond the checkpoint's own, and the switches they need."""

from __future__ import annotations

from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings
from nemolab.lint.registry import rule

SWITCH = {
    "vllm": "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    "sglang": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    "trtllm": "TLLM_ALLOW_LONG_MAX_MODEL_LEN",
}
FLAG = {"vllm": "--max-model-len", "sglang": "--context-length", "trtllm": "--max_seq_len"}
_DESTS = ("max_model_len", "context_length", "max_seq_len")
_SOURCE = "Nemotron 3 model card and NVIDIA's cookbook; engine source of the switch"


def _set(case: Case) -> bool:
    value = case.env(SWITCH[case.engine or "vllm"])
    return value is not None and value.strip().lower() not in ("0", "false", "no", "")


@rule(
    "R-LONG",
    "a context beyond the checkpoint's limit needs both the length and the engine's switch",
    "vllm",
    "sglang",
    "trtllm",
)
def long_context(case: Case) -> Findings:
    engine = case.engine or "vllm"
    s, switch, flag = case.settings, SWITCH[engine], FLAG[engine]
    allowed = _set(case)
    if case.model is None or case.model.architecture is None:
        if allowed and s.length is None and case.launch.entry != "options file":
            yield case.find(
                "R-LONG",
                Severity.WARNING,
                f"{switch} alone changes nothing: no length is given",
                f"add {flag}, or drop the variable",
                _SOURCE,
                env=switch,
            )
        return
    native = case.model.max_model_len
    beyond = s.length is not None and s.length > native
    overridden = bool(case.text("hf_overrides") or case.text("json_model_override_args"))
    if beyond and not allowed and not overridden and case.launch.entry != "options file":
        yield case.find(
            "R-LONG",
            Severity.ERROR,
            f"{s.length:,} tokens are beyond the {native:,} of {case.model.name}'s "
            f"config: the engine refuses to start without {switch}=1",
            f"set {switch}=1 (this family has no positions, so nothing else is needed), or use {native}",
            _SOURCE,
            *_DESTS,
            **_yaml(case),
        )
    elif allowed and s.length is None:
        yield case.find(
            "R-LONG",
            Severity.WARNING,
            f"{switch} alone changes nothing: without {flag} the limit stays at {native:,}",
            f"add {flag} 1048576, or drop the variable",
            _SOURCE,
            env=switch,
        )
    elif allowed and not beyond and s.length:
        yield case.find(
            "R-LONG",
            Severity.WARNING,
            f"{switch} has no effect with {s.length:,}: {case.model.name} allows {native:,} without it",
            "drop the variable, or raise the length",
            _SOURCE,
            env=switch,
        )
    if engine == "sglang" and s.length == 1048576:
        yield case.find(
            "R-LONG",
            Severity.INFO,
            "SGLang refuses input plus reserved output at or above the length: "
            "a prompt of exactly 1,048,576 tokens never fits",
            "",
            "SGLang 0.5.23 request validation",
            *_DESTS,
        )
    if engine == "sglang" and s.length and s.length >= 1_000_000 and not s.sequences:
        yield case.find(
            "R-LONG",
            Severity.WARNING,
            "at 1M each request slot costs 4 MiB of GPU memory, and the default has thousands of slots (8 to 16 GiB)",
            "set --max-running-requests to what you need, such as 32",
            "SGLang 0.5.23 ReqToTokenPool",
            "context_length",
        )
    if engine == "sglang" and case.on("allow_auto_truncate"):
        yield case.find(
            "R-LONG",
            Severity.WARNING,
            "--allow-auto-truncate cuts the end of a long prompt, which holds the question",
            "leave it off and count tokens first",
            "SGLang 0.5.23",
            "allow_auto_truncate",
        )
    if (
        engine == "trtllm"
        and s.length
        and s.length >= 500_000
        and case.launch.yaml is not None
        and case.yaml("kv_cache_config.avg_seq_len") is None
    ):
        yield case.find(
            "R-TRT",
            Severity.ERROR,
            f"kv_cache_config.avg_seq_len is not set with a maximum of {s.length:,}: half the "
            "maximum is assumed, and prompts near 256K crashed the server",
            "set kv_cache_config.avg_seq_len (9000 was used for an 800K prompt on 4 x B200)",
            "TensorRT-LLM#17926",
            flag="kv_cache_config.avg_seq_len",
        )


def _yaml(case: Case) -> dict[str, str]:
    return {"yaml": "max_seq_len"} if case.engine == "trtllm" and case.yaml("max_seq_len") is not None else {}


@rule("R-ROPE", "no position overrides: this family's attention has no positions", "vllm", "sglang")
def rope(case: Case) -> Findings:
    if not case.hybrid:
        return
    for dest in ("hf_overrides", "json_model_override_args"):
        document = case.document(dest) or {}
        keys = [key for key in document if key.startswith("rope")]
        if keys:
            yield case.find(
                "R-ROPE",
                Severity.WARNING,
                f"{', '.join(keys)} has no effect: the attention layers of this family have no positional embedding",
                "remove it; the length switch is all that 1M needs",
                "nemotron_h.py in vLLM 0.22.0: no rotary code",
                dest,
            )

"""Rules on the text around a launch: host commands, drivers, installs, requests, invented names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.lint.launch import Script, Word

ScriptCheck = Callable[[Script], Iterator[Finding]]
CHECKS: list[ScriptCheck] = []


def check(function: ScriptCheck) -> ScriptCheck:
    """Register a check of the whole text."""
    CHECKS.append(function)
    return function


def _finding(
    code: str, severity: Severity, line: int, message: str, fix: str, source: str, flag: str | None = None
) -> Finding:
    return Finding(code, severity, message, fix, source, flag, f"line {line}" if line else None)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _name(words: list[Word]) -> str:
    return words[0].text.rsplit("/", 1)[-1]


def _commands(script: Script, *names: str) -> Iterator[list[Word]]:
    return (words for words in script.commands if _name(words) in names)


@check
def host_commands(script: Script) -> Iterator[Finding]:
    for words in _commands(script, "nvidia-smi"):
        texts = [w.text for w in words]
        if {"-r", "--gpu-reset"} & set(texts):
            yield _finding(
                "R-HOST",
                Severity.ERROR,
                words[0].line,
                "nvidia-smi -r resets the GPU: it is refused while anything holds the device, "
                "persistence mode included, and ends what runs on it",
                "leave it out; power limits apply without a reset",
                "NVSentinel#1690",
                "-r",
            )
        if (
            ("-pl" in texts or "--power-limit" in texts)
            and ("-i" in texts or "--id" in texts)
            and len(list(_commands(script, "nvidia-smi"))) < 3
        ):
            yield _finding(
                "R-HOST",
                Severity.INFO,
                words[0].line,
                "the power limit is set on one GPU only: a tensor-parallel group runs at the speed of its slowest",
                "",
                "nvidia-smi manual",
                "-pl",
            )
        if "dmon" in texts and re.search(r"(?s)dmon.*(-gt|-lt|-ge|-le|>=|<=|awk)", script.text):
            yield _finding(
                "R-METRIC",
                Severity.WARNING,
                words[0].line,
                "the sm column is the share of time with any kernel running: "
                "near 100 % at batch 1 too, so it is no gate",
                "gate on queue depth, KV use and DCGM's tensor activity",
                "nvidia-smi manual; DCGM field documentation",
                "dmon",
            )
    for line, text in _unit_lines(script.text):
        if re.search(r"nvidia-smi\b.*\s(-r|--gpu-reset)\b", text):
            yield _finding(
                "R-HOST",
                Severity.ERROR,
                line,
                "a boot unit that resets the GPU: nvidia-smi -r is refused while "
                "anything holds the device, and not needed",
                "set persistence mode and -pl for every GPU, without a reset",
                "NVSentinel#1690",
                "-r",
            )
    for words in _commands(script, "systemctl", "service"):
        for word in words[1:]:
            if re.fullmatch(r"nvidia-container-(runtime|toolkit)(\.service)?", word.text):
                yield _finding(
                    "R-HOST",
                    Severity.ERROR,
                    word.line,
                    f"{word.text} is a program, not a service",
                    "restart docker or containerd",
                    "NVIDIA Container Toolkit documentation",
                    word.text,
                )
    for match in re.finditer(r"NVIDIA_DISABLE_REQUIRE\s*[=:]\s*['\"]?(true|1)", script.text):
        yield _finding(
            "R-HOST",
            Severity.WARNING,
            _line(script.text, match.start()),
            "NVIDIA_DISABLE_REQUIRE hides a driver that is too old for the image",
            "leave it out and update the driver",
            "NVIDIA Container Toolkit documentation",
            "NVIDIA_DISABLE_REQUIRE",
        )
    if "nvidia-container" in script.text or "[nvidia-container-cli]" in script.text:
        for match in re.finditer(r"(?m)^\s*(env|devices)\s*=\s*\[", script.text):
            yield _finding(
                "R-HOST",
                Severity.ERROR,
                _line(script.text, match.start()),
                f"the key {match[1]} does not exist in config.toml"
                + (": it is environment" if match[1] == "env" else ""),
                "use nvidia-ctk runtime configure, or CDI",
                "NVIDIA Container Toolkit, config.toml",
                match[1],
            )


def _unit_lines(text: str) -> Iterator[tuple[int, str]]:
    """`Exec...=` lines of a systemd unit inside a text."""
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*Exec\w+\s*=", line):
            yield number, line


# Lowest driver branch: NIM and CUDA 13 images 580, TensorRT-LLM 575 (vendor support matrices of 2026).
_DRIVER = 580
_BUNDLED = {
    "12.2.2": "535.104.05",
    "12.3.0": "545.23.06",
    "12.4.0": "550.54.14",
    "12.4.1": "550.54.15",
    "12.5.0": "555.42.02",
    "12.5.1": "555.42.06",
    "12.6.0": "560.28.03",
}


@check
def drivers(script: Script) -> Iterator[Finding]:
    seen: set[str] = set()
    for match in re.finditer(
        r"\bnvidia-(?:driver|open|headless|dkms)-(\d{3})\b|NVIDIA-Linux-x86_64-(\d{3})[\d.]*\.run|cuda-drivers-(\d{3})\b",
        script.text,
    ):
        branch = next(g for g in match.groups() if g)
        if int(branch) < _DRIVER and match[0] not in seen:
            seen.add(match[0])
            yield _finding(
                "R-DRIVER",
                Severity.ERROR,
                _line(script.text, match.start()),
                f"driver {branch} is below {_DRIVER}, which NIM and current CUDA 13 images need (TensorRT-LLM: 575)",
                f"install nvidia-driver-{_DRIVER} or newer from the distribution",
                "NIM and TensorRT-LLM support matrices, 2026",
                match[0],
            )
    for match in re.finditer(r"cuda_(\d+\.\d+\.\d+)_(\d{3}\.\d+(?:\.\d+)?)_linux", script.text):
        bundled = _BUNDLED.get(match[1])
        if bundled and bundled != match[2]:
            yield _finding(
                "R-DRIVER",
                Severity.ERROR,
                _line(script.text, match.start()),
                f"CUDA {match[1]} comes with driver {bundled}, not {match[2]}: no such file",
                f"cuda_{match[1]}_{bundled}_linux.run, or the distribution's packages",
                "CUDA release archive",
                match[0],
            )


@check
def installs(script: Script) -> Iterator[Finding]:
    for words in script.commands:
        texts = [w.text for w in words]
        if "install" not in texts or not re.search(r"\b(pip3?|uv|python3?)$", _name(words)):
            continue
        pins = {
            m[1].lower().replace("_", "-"): m[2]
            for t in texts
            if (m := re.match(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([\w.]+)$", t))
        }
        line = words[0].line
        fastapi, instrument = pins.get("fastapi"), pins.get("prometheus-fastapi-instrumentator")
        if fastapi and instrument and fastapi.split(".")[:2] >= ["0", "138"] and instrument.startswith("8.0.0"):
            yield _finding(
                "M-DRIFT",
                Severity.ERROR,
                line,
                f"fastapi {fastapi} with prometheus-fastapi-instrumentator {instrument}: every API route answers 500",
                "pin fastapi==0.136.3",
                "measured on vLLM 0.22.0",
                "fastapi",
            )
        elif (
            pins.get("vllm") == "0.22.0"
            and not fastapi
            and not any("exclude-newer" in t or t in ("-r", "-c", "--constraint", "--requirement") for t in texts)
        ):
            yield _finding(
                "M-DRIFT",
                Severity.WARNING,
                line,
                "vllm 0.22.0 with undated dependencies takes a newer FastAPI: the server starts and answers 500",
                "pin fastapi==0.136.3, or resolve to the release's date",
                "measured on vLLM 0.22.0, H200",
                "fastapi",
            )
        if "--no-deps" in texts and any(t.startswith(("vllm", "sglang")) for t in texts):
            yield _finding(
                "M-DRIFT",
                Severity.WARNING,
                line,
                "--no-deps leaves the engine's own dependencies unresolved",
                "resolve the release's own dependencies, dated",
                "packaging metadata of the engine",
                "--no-deps",
            )
        if (version := pins.get("vllm")) and _older_than(version, (0, 11, 2)):
            yield _finding(
                "R-MINVER",
                Severity.ERROR,
                line,
                f"vllm {version} is too old for Nemotron 3: Nano needs 0.11.2, "
                "Super 0.17.1, Ultra 0.22.0, Lightning 0.27.1",
                "use the version of the model",
                "catalogue: minimum versions",
                f"vllm=={version}",
            )
        if any(re.match(r"pydantic<\s*2", t) for t in texts):
            yield _finding(
                "M-DRIFT",
                Severity.ERROR,
                line,
                "pydantic below 2 cannot run any engine version of this family",
                "leave pydantic to the engine's own requirements",
                "vLLM metadata",
                "pydantic",
            )
    for words in _commands(script, "sed", "patch", "perl"):
        for word in words[1:]:
            if re.search(r"(vllm|sglang|tensorrt_llm).*\.py$|(^|/)api_server\.py$", word.text):
                yield _finding(
                    "R-PATCHED",
                    Severity.WARNING,
                    word.line,
                    f"{word.text} is edited in place: the next image or upgrade loses it, and batch limits are flags",
                    "use the flags (--max-num-seqs, --max-num-batched-tokens; "
                    "queue limits in the gateway or vLLM 0.29)",
                    "vLLM 0.33.0 command line",
                    word.text,
                )


def _older_than(version: str, low: tuple[int, ...]) -> bool:
    from nemolab.lint.schema import version_key

    return version_key(version)[:3] < low


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


@check
def invented(script: Script) -> Iterator[Finding]:
    for pattern, (what, fix) in _INVENTED.items():
        if match := re.search(pattern, script.text):
            yield _finding(
                "F-NEVER",
                Severity.ERROR,
                _line(script.text, match.start()),
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


@check
def removed(script: Script) -> Iterator[Finding]:
    source = "TensorRT-LLM#15763, #15907, #15918 (removed after 1.3.0rc20, 2026-06-30)"
    for pattern, (what, fix) in _REMOVED.items():
        if match := re.search(pattern, script.text):
            yield _finding(
                "R-REMOVED",
                Severity.ERROR,
                _line(script.text, match.start()),
                f"{match[0].split()[0][:60]}: {what}",
                fix,
                source,
                match[0].split()[0][:60],
            )


@check
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
        import difflib

        near = difflib.get_close_matches(name, [m.repo for m in models.entries().values() if m.repo], 1, 0.3)
        yield _finding(
            "R-MODEL",
            Severity.ERROR,
            _line(script.text, match.start(1)),
            f"{name} is not a published repository of this family",
            f"did you mean {near[0]}?" if near else "nemolab models lists them",
            "catalogue",
            name,
        )


def _image_context(text: str, at: int) -> bool:
    """Whether a name is part of an image reference such as nvcr.io/nim/nvidia/...."""
    return text[max(0, at - 8) : at].endswith(("nim/", "io/"))


@check
def requests(script: Script) -> Iterator[Finding]:
    """Bodies of chat requests in curl commands."""
    served = {name for launch in script.launches for name in _served(launch.argv)}
    for words in _commands(script, "curl"):
        for at, word in enumerate(words):
            if word.text in ("-d", "--data", "--data-raw", "--json", "--data-binary") and at + 1 < len(words):
                yield from _body(words[at + 1], served)


def _served(argv: list[str]) -> set[str]:
    names: set[str] = set()
    for flag in ("--served-model-name", "--served_model_name"):
        if flag in argv:
            at = argv.index(flag) + 1
            while at < len(argv) and not argv[at].startswith("-"):
                names.add(argv[at])
                at += 1
    return names


_CLIENT = "rendered chat template of the Lightning checkpoint; engine request schemas"


def _body(word: Word, served: set[str]) -> Iterator[Finding]:
    try:
        body = json.loads(word.text)
    except (ValueError, RecursionError):
        if word.text.lstrip().startswith("{") and "$" not in word.text:
            yield _finding(
                "R-CLIENT",
                Severity.ERROR,
                word.line,
                "the request body is not JSON",
                "mend the quotes: single quotes outside, double inside",
                "RFC 8259",
                "-d",
            )
        return
    if not isinstance(body, dict):
        return
    line = word.line
    given = body.get("chat_template_kwargs")
    kwargs: dict[str, Any] = given if isinstance(given, dict) else {}
    for key in ("reasoning_budget", "low_effort"):
        if key in body or key in kwargs:
            yield _finding(
                "R-CLIENT",
                Severity.WARNING,
                line,
                f"{key} is ignored by this family's template",
                "use chat_template_kwargs.medium_effort, or max_tokens",
                _CLIENT,
                key,
            )
    if "reasoning_effort" in body:
        yield _finding(
            "R-CLIENT",
            Severity.WARNING,
            line,
            "reasoning_effort is ignored by this family's template",
            "use chat_template_kwargs.enable_thinking or medium_effort",
            _CLIENT,
            "reasoning_effort",
        )
    for key in ("force_nonempty_content", "enable_thinking"):
        if key in body:
            yield _finding(
                "R-CLIENT",
                Severity.WARNING,
                line,
                f"{key} at the top level is not passed to the template",
                "put it into chat_template_kwargs",
                _CLIENT + "; dynamo#11251",
                key,
            )
    for wrong, right in (("max_new_tokens", "max_tokens"), ("stop_sequences", "stop")):
        if wrong in body and "messages" in body:
            yield _finding(
                "R-CLIENT",
                Severity.WARNING,
                line,
                f"{wrong} is no field of this API",
                f"use {right}",
                "OpenAI-compatible API",
                wrong,
            )
    stop = body.get("stop", body.get("stop_sequences"))
    if "\n\n" in (stop if isinstance(stop, list) else [stop]):
        yield _finding(
            "R-CLIENT",
            Severity.WARNING,
            line,
            "stopping at a blank line cuts code and reasoning",
            "leave stop out",
            "model card",
            "stop",
        )
    temperature = body.get("temperature")
    thinking = kwargs.get("enable_thinking", True) is not False
    if thinking and isinstance(temperature, int | float) and 0 < temperature < 0.6 and "messages" in body:
        yield _finding(
            "R-CLIENT",
            Severity.WARNING,
            line,
            f"temperature {temperature} with reasoning on: the card recommends 1.0 with top_p 0.95",
            "use 1.0 and 0.95",
            "Nemotron 3 model card",
            "temperature",
        )
    forced = (
        body.get("tool_choice") == "required"
        or isinstance(body.get("tool_choice"), dict)
        or (
            isinstance(body.get("response_format"), dict)
            and body["response_format"].get("type") in ("json_object", "json_schema")
        )
    )
    if thinking and forced:
        yield _finding(
            "R-CLIENT",
            Severity.WARNING,
            line,
            "thinking with a forced tool or constrained JSON has known output problems",
            "set chat_template_kwargs.enable_thinking to false for this request",
            "Ultra deployment guide; anyscale/templates#1086",
            "tool_choice" if "tool_choice" in body else "response_format",
        )
    if served and isinstance(body.get("model"), str) and body["model"] not in served:
        yield _finding(
            "R-NAME",
            Severity.ERROR,
            line,
            f"the request asks for {body['model']}, the server offers {', '.join(sorted(served))}",
            "use one name",
            "NemoClaw#11045",
            "model",
        )


@check
def load_tests(script: Script) -> Iterator[Finding]:
    for words in _commands(script, "locust"):
        texts = [w.text for w in words]
        if "--headless" in texts and ("-u" in texts or "--users" in texts) and "LoadTestShape" not in script.text:
            yield _finding(
                "R-LOADTEST",
                Severity.WARNING,
                words[0].line,
                "-u with -r ramps up once and stays flat: no stages, and a closed loop hides queueing",
                "use a LoadTestShape, and a fixed-rate run beside it",
                "Locust documentation",
                "-u",
            )

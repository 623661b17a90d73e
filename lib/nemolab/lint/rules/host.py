"""Rules on host commands around a launch: GPU resets, units, container runtime, drivers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nemolab.core.finding import Finding, Severity
from nemolab.lint.launch import Script
from nemolab.lint.registry import text_rule
from nemolab.lint.rules.textual import at, commands_of, line_at


@text_rule("nvidia-smi", "systemctl", "service", "NVIDIA_DISABLE_REQUIRE", "nvidia-container")
def hostcommands_of(script: Script) -> Iterator[Finding]:
    for words in commands_of(script, "nvidia-smi"):
        texts = [w.text for w in words]
        if {"-r", "--gpu-reset"} & set(texts):
            yield at(
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
            and len(list(commands_of(script, "nvidia-smi"))) < 3
        ):
            yield at(
                "R-HOST",
                Severity.INFO,
                words[0].line,
                "the power limit is set on one GPU only: a tensor-parallel group runs at the speed of its slowest",
                "",
                "nvidia-smi manual",
                "-pl",
            )
        if "dmon" in texts and re.search(r"(?s)dmon.*(-gt|-lt|-ge|-le|>=|<=|awk)", script.text):
            yield at(
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
            yield at(
                "R-HOST",
                Severity.ERROR,
                line,
                "a boot unit that resets the GPU: nvidia-smi -r is refused while "
                "anything holds the device, and not needed",
                "set persistence mode and -pl for every GPU, without a reset",
                "NVSentinel#1690",
                "-r",
            )
    for words in commands_of(script, "systemctl", "service"):
        for word in words[1:]:
            if re.fullmatch(r"nvidia-container-(runtime|toolkit)(\.service)?", word.text):
                yield at(
                    "R-HOST",
                    Severity.ERROR,
                    word.line,
                    f"{word.text} is a program, not a service",
                    "restart docker or containerd",
                    "NVIDIA Container Toolkit documentation",
                    word.text,
                )
    for match in re.finditer(r"NVIDIA_DISABLE_REQUIRE\s*[=:]\s*['\"]?(true|1)", script.text):
        yield at(
            "R-HOST",
            Severity.WARNING,
            line_at(script.text, match.start()),
            "NVIDIA_DISABLE_REQUIRE hides a driver that is too old for the image",
            "leave it out and update the driver",
            "NVIDIA Container Toolkit documentation",
            "NVIDIA_DISABLE_REQUIRE",
        )
    if "nvidia-container" in script.text or "[nvidia-container-cli]" in script.text:
        for match in re.finditer(r"(?m)^\s*(env|devices)\s*=\s*\[", script.text):
            yield at(
                "R-HOST",
                Severity.ERROR,
                line_at(script.text, match.start()),
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


@text_rule("nvidia", "NVIDIA", "cuda")
def drivers(script: Script) -> Iterator[Finding]:
    seen: set[str] = set()
    for match in re.finditer(
        r"\bnvidia-(?:driver|open|headless|dkms)-(\d{3})\b|NVIDIA-Linux-x86_64-(\d{3})[\d.]*\.run|cuda-drivers-(\d{3})\b",
        script.text,
    ):
        branch = next(g for g in match.groups() if g)
        if int(branch) < _DRIVER and match[0] not in seen:
            seen.add(match[0])
            yield at(
                "R-DRIVER",
                Severity.ERROR,
                line_at(script.text, match.start()),
                f"driver {branch} is below {_DRIVER}, which NIM and current CUDA 13 images need (TensorRT-LLM: 575)",
                f"install nvidia-driver-{_DRIVER} or newer from the distribution",
                "NIM and TensorRT-LLM support matrices, 2026",
                match[0],
            )
    for match in re.finditer(r"cuda_(\d+\.\d+\.\d+)_(\d{3}\.\d+(?:\.\d+)?)_linux", script.text):
        bundled = _BUNDLED.get(match[1])
        if bundled and bundled != match[2]:
            yield at(
                "R-DRIVER",
                Severity.ERROR,
                line_at(script.text, match.start()),
                f"CUDA {match[1]} comes with driver {bundled}, not {match[2]}: no such file",
                f"cuda_{match[1]}_{bundled}_linux.run, or the distribution's packages",
                "CUDA release archive",
                match[0],
            )

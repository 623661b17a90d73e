"""R-PARSER, R-REASONCFG: reasoning and tool parsers, and what they need beside them."""

from __future__ import annotations

from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings, label
from nemolab.lint.registry import rule

_DYNAMO = {"nemotron_v3": "nemotron3", "nemotron_3": "nemotron3", "nemotron-v3": "nemotron3", "nano_v3": "nemotron3"}


@rule("R-PARSER", "a tool parser and the switch for it come together; a plugin comes with its name", "vllm")
def tools(case: Case) -> Findings:
    dynamo = case.launch.engine == "dynamo"
    parser, auto = case.text("tool_call_parser"), case.on("enable_auto_tool_choice")
    if parser and not auto and not dynamo:
        yield case.find(
            "R-PARSER",
            Severity.ERROR,
            f"--tool-call-parser {parser} without --enable-auto-tool-choice: "
            "requests with tool_choice auto get HTTP 400",
            "add --enable-auto-tool-choice",
            "vLLM tool calling documentation; 0.22.0 serving_chat",
            "tool_call_parser",
        )
    if auto and not parser:
        yield case.find(
            "R-PARSER",
            Severity.ERROR,
            "--enable-auto-tool-choice without --tool-call-parser: vLLM refuses to start",
            "add --tool-call-parser qwen3_coder",
            "vLLM 0.22.0 cli_args.py, validate_parsed_serve_args",
            "enable_auto_tool_choice",
        )
    plugin, name = case.text("reasoning_parser_plugin"), case.text("reasoning_parser")
    if plugin and not name:
        yield case.find(
            "R-PARSER",
            Severity.WARNING,
            "--reasoning-parser-plugin only registers a name: without --reasoning-parser nothing uses it",
            "add --reasoning-parser with the plugin's own name, such as ultra_v3",
            "vLLM 0.22.0 reasoning registry",
            "reasoning_parser_plugin",
        )
    elif plugin and name == "nemotron_v3":
        yield case.find(
            "R-PARSER",
            Severity.INFO,
            "nemotron_v3 is vLLM's built-in parser: the plugin is loaded, but its own "
            "class is not the one used unless it takes that name",
            "",
            "vLLM 0.22.0 and 0.33.0 reasoning registry",
            "reasoning_parser_plugin",
        )
    if case.on("enable_log_outputs") and not case.on("enable_log_requests"):
        yield case.find(
            "R-PARSER",
            Severity.ERROR,
            "--enable-log-outputs needs --enable-log-requests: vLLM refuses to start",
            "add --enable-log-requests",
            "vLLM 0.22.0 cli_args.py, validate_parsed_serve_args",
            "enable_log_outputs",
        )


@rule("R-PARSER", "Dynamo's parser names", "dynamo")
def dynamo(case: Case) -> Findings:
    words = case.launch.argv
    for flag in ("--dyn-reasoning-parser", "--dyn-tool-call-parser"):
        at = words.index(flag) if flag in words else -1
        value = words[at + 1] if 0 <= at < len(words) - 1 else None
        if value in _DYNAMO and flag == "--dyn-reasoning-parser":
            yield case.find(
                "R-PARSER",
                Severity.ERROR,
                f"{flag} {value}: Dynamo's own name is {_DYNAMO[value]}",
                f"use {flag} {_DYNAMO[value]}",
                "Dynamo 1.4.0 recipes; dynamo#7225",
                flag=flag,
            )


@rule("R-REASONCFG", "one mechanism owns the think tags", "vllm")
def reasoning_config(case: Case) -> Findings:
    if case.option("reasoning_config") and case.option("reasoning_parser"):
        yield case.find(
            "R-REASONCFG",
            Severity.WARNING,
            f"--reasoning-config and --reasoning-parser both act on the think tags in {label(case)}",
            "run the smoke test with thinking on and off",
            "vLLM reasoning documentation",
            "reasoning_config",
        )

"""Rules on requests and load tests in a text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from nemolab.core.finding import Finding, Severity
from nemolab.lint.launch import Script, Word
from nemolab.lint.registry import text_rule
from nemolab.lint.rules.textual import at, commands_of


@text_rule("curl")
def requests(script: Script) -> Iterator[Finding]:
    """Bodies of chat requests in curl commands."""
    served = {name for launch in script.launches for name in _served(launch.argv)}
    for words in commands_of(script, "curl"):
        for index, word in enumerate(words):
            if word.text in ("-d", "--data", "--data-raw", "--json", "--data-binary") and index + 1 < len(words):
                yield from _body(words[index + 1], served)


def _served(argv: list[str]) -> set[str]:
    names: set[str] = set()
    for flag in ("--served-model-name", "--served_model_name"):
        if flag in argv:
            index = argv.index(flag) + 1
            while index < len(argv) and not argv[index].startswith("-"):
                names.add(argv[index])
                index += 1
    return names


_CLIENT = "rendered chat template of the Lightning checkpoint; engine request schemas"


def _body(word: Word, served: set[str]) -> Iterator[Finding]:
    try:
        body = json.loads(word.text)
    except (ValueError, RecursionError):
        if word.text.lstrip().startswith("{") and "$" not in word.text:
            yield at(
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
            yield at(
                "R-CLIENT",
                Severity.WARNING,
                line,
                f"{key} is ignored by this family's template",
                "use chat_template_kwargs.medium_effort, or max_tokens",
                _CLIENT,
                key,
            )
    if "reasoning_effort" in body:
        yield at(
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
            yield at(
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
            yield at(
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
        yield at(
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
        yield at(
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
        yield at(
            "R-CLIENT",
            Severity.WARNING,
            line,
            "thinking with a forced tool or constrained JSON has known output problems",
            "set chat_template_kwargs.enable_thinking to false for this request",
            "Ultra deployment guide; anyscale/templates#1086",
            "tool_choice" if "tool_choice" in body else "response_format",
        )
    if served and isinstance(body.get("model"), str) and body["model"] not in served:
        yield at(
            "R-NAME",
            Severity.ERROR,
            line,
            f"the request asks for {body['model']}, the server offers {', '.join(sorted(served))}",
            "use one name",
            "NemoClaw#11045",
            "model",
        )


@text_rule("locust")
def load_tests(script: Script) -> Iterator[Finding]:
    for words in commands_of(script, "locust"):
        texts = [w.text for w in words]
        if "--headless" in texts and ("-u" in texts or "--users" in texts) and "LoadTestShape" not in script.text:
            yield at(
                "R-LOADTEST",
                Severity.WARNING,
                words[0].line,
                "-u with -r ramps up once and stays flat: no stages, and a closed loop hides queueing",
                "use a LoadTestShape, and a fixed-rate run beside it",
                "Locust documentation",
                "-u",
            )

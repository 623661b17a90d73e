"""What `25_serve_llamacpp` does: look at the model, start llama.cpp, ask one question, show the start, stop it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nemolab.client.api import openai_client
from nemolab.client.endpoint import Endpoint
from nemolab.core import step
from nemolab.core.finding import Finding, Severity
from nemolab.engines import llamacpp, ports, process, state
from nemolab.engines.launch import Owner
from nemolab.engines.llamacpp import Options
from nemolab.engines.logs import Phase, Quantity
from nemolab.engines.serving_look import phases_sentence

QUESTION = "The special magic number for wild-crane is 7421906. What is the special magic number for wild-crane?"

Progress = Callable[[float, float | None, str | None], None]


@dataclass(frozen=True, slots=True)
class Planned:
    """One setting of the start, and what it means."""

    setting: str
    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that was started, as the notebook shows and publishes it: no path, nothing of this machine.

    Attributes:
        id: for `nemolab servers`.
        ready_s: seconds from the start until it answered.
        phases, capacity, notes: what its log said by then.
    """

    id: str
    base_url: str
    model: str
    engine: str
    engine_version: str
    ready_s: float
    phases: tuple[Phase, ...]
    capacity: dict[str, Quantity]
    notes: tuple[Finding, ...]

    def quantity(self, name: str) -> float | None:
        """A number of the log, None when it was not printed."""
        found = self.capacity.get(name)
        return None if found is None else float(found.value)


@dataclass(frozen=True, slots=True)
class Answer:
    """The first answer: thoughts, content, and how it ended."""

    reasoning: str
    content: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float


def plan(options: Options) -> tuple[Planned, ...]:
    """What will be started, and on what. Refuses a model that is not there and a port that is taken.

    Raises:
        UsageError: naming the file, or the holder of the port.
    """
    path = llamacpp.model_path(options.model)
    ports.require_free("127.0.0.1", options.port)
    threads = options.threads or llamacpp.default_threads()
    return (
        Planned("model", path.stem, f"{path.stat().st_size / 1e6:,.1f} MB of GGUF"),
        Planned("ctx", f"{options.ctx:,}", "tokens that a request can have, prompt and answer"),
        Planned("parallel", str(options.parallel), "requests at the same time; further ones wait"),
        Planned("threads", str(threads), f"of {llamacpp.cores()} cores; one is for the client"),
        Planned("port", str(options.port) if options.port else "any", "on loopback: no other machine can reach it"),
    )


def plan_rows(planned: Sequence[Planned]) -> list[dict[str, object]]:
    """One row a setting."""
    return [{"setting": p.setting, "value": p.value, "which is": p.meaning} for p in planned]


def start(options: Options, keep_running: bool = False, progress: Progress | None = None) -> Serving:
    """Start llama.cpp and wait until it answers.

    Args:
        keep_running: outside a run, the server then belongs to nobody and lives until `nemolab servers stop`.
        progress: called as `progress(elapsed_s, limit_s, phase)`.

    Raises:
        StartError: it did not become ready; says why.
    """

    def tell(at: process.Progress) -> None:
        if progress:
            progress(round(at.elapsed_s, 1), None, at.phase)

    owner = Owner.nobody() if keep_running and not step.current().run else None
    server = llamacpp.serve(options, owner, progress=tell)
    return Serving(
        id=server.id,
        base_url=server.base_url,
        model=server.model,
        engine=server.engine,
        engine_version=server.report.version,
        ready_s=server.ready_s,
        phases=server.report.phases,
        capacity=server.report.capacity,
        notes=tuple(server.report.findings()),
    )


def ask(
    base_url: str, model: str, question: str = QUESTION, max_tokens: int = 256, api_key_env: str | None = None
) -> Answer:
    """One question by the openai client, at temperature 0."""
    client = openai_client(Endpoint(base_url, model, api_key_env=api_key_env))
    began = time.perf_counter()  # after the import of openai, which takes longer than a small model's answer
    reply = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": question}], temperature=0, max_tokens=max_tokens
    )
    seconds = time.perf_counter() - began
    choice, usage = reply.choices[0], reply.usage
    return Answer(
        reasoning=_reasoning(choice.message),
        content=choice.message.content or "",
        finish_reason=choice.finish_reason,
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        seconds=round(seconds, 3),
    )


def _reasoning(message: object) -> str:
    """Thoughts, as `reasoning_content` or, in vLLM, as `reasoning`."""
    return str(getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or "")


def release(server_id: str, keep_running: bool = False) -> str:
    """Stop the server, unless later steps or a person need it; what happened, in a sentence."""
    if step.current().run:
        return "The server stays for the next steps; the run stops it when it ends."
    if keep_running:
        return f"The server keeps running. Stop it with: nemolab servers stop {server_id}"
    process.stop(server_id)
    left = [server.id for server in state.every() if server.id == server_id and server.running]
    return "The server could not be stopped." if left else "The server is stopped; no process and no port is left."


def sentence(serving: Serving) -> str:
    """How the start went, in words."""
    return f"Ready after {serving.ready_s:.2f} s. {phases_sentence(serving.phases)}"


def findings(serving: Serving, answer: Answer) -> tuple[Finding, ...]:
    """What the log warned of, and what is wrong with the first answer."""
    found = list(serving.notes)
    if not answer.content:
        found.append(
            Finding(
                "P-first",
                Severity.ERROR,
                f"The first answer has no content (finish_reason {answer.finish_reason}).",
                "30_probe_api says which parser or template is wrong",
            )
        )
    return tuple(found)

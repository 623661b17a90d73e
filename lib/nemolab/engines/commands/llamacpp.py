"""llama.cpp: `llama-server --model FILE --flag value`; on this machine the embedded server of `nemolab serve`.

Source: llama.cpp, tools/server/README.md. `--ctx-size` is the sum over the slots of `--parallel`.
"""

from __future__ import annotations

from dataclasses import replace

from nemolab.core.errors import UsageError
from nemolab.engines.command import Command, Place, flags
from nemolab.engines.launch import Launch
from nemolab.engines.profile import Profile

_OPTIONS = ("ctx-size", "parallel", "threads", "cache-reuse", "cache-ram", "reasoning-format")
_BATCH = ("batch-size", "ubatch-size")  # tokens of a prompt in one step, and in one call of the kernels


def command(profile: Profile, place: Place) -> Command:
    """`llama-server`."""
    model = place.model or f"{profile.model}.gguf"
    words = flags(profile.args, profile.where("args"), negative="no-")
    listen = ["--host", place.host, "--port", str(profile.port)]
    return Command(
        argv=("llama-server", "--model", model, "--alias", profile.model, *words, *listen),
        entry=1,
        served=profile.model,
        user=(1000, 1000),
    )


def launch(profile: Profile, model: str) -> Launch:
    """The embedded server with the profile's options.

    Raises:
        UsageError: an option that the embedded server does not have.
    """
    from nemolab.engines import llamacpp

    for name in profile.args:
        if name not in (*_OPTIONS, *_BATCH, "metrics", "jinja"):
            raise UsageError(
                f"the embedded llama.cpp does not take --{name}",
                where=profile.where(f"args.{name}"),
                fix=f"one of: {', '.join((*_OPTIONS, *_BATCH))}",
            )
    given = {name.replace("-", "_"): value for name, value in profile.args.items() if name in _OPTIONS}
    parallel = int(given.pop("parallel", 2))  # type: ignore[arg-type]
    ctx = int(given.pop("ctx_size", 16384 * parallel)) // parallel  # type: ignore[arg-type]
    options = llamacpp.Options(model=model or profile.model, ctx=ctx, parallel=parallel, port=profile.port, **given)  # type: ignore[arg-type]
    made = llamacpp.launch(options)
    batch = [word for name in _BATCH if name in profile.args for word in (f"--{name}", str(profile.args[name]))]
    return replace(made, argv=(*made.argv, *batch))

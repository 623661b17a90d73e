"""TensorRT-LLM: `trtllm-serve MODEL --flag value --extra_llm_api_options FILE`.

Source: `tensorrt_llm/commands/serve.py` (1.3.0rc, 1.4.0rc): click, underscores only, the file wins over the command
line. The release image has no entry point of its own that starts a server.
"""

from __future__ import annotations

from nemolab.core.errors import UsageError
from nemolab.engines.command import Command, Place, flags, model_word, served_name
from nemolab.engines.profile import Profile


def command(profile: Profile, place: Place) -> Command:
    """`trtllm-serve`; on several machines every rank is started by MPI."""
    if len(profile.files) > 1:
        raise UsageError("trtllm-serve takes one options file", where=profile.where("files"))
    words = flags(profile.args, profile.where("args"))
    for name in profile.files:
        words += ["--extra_llm_api_options", f"{place.config}/{name}"]
    if profile.revision and not place.model:
        words += ["--revision", profile.revision]
    start = ("trtllm-llmapi-launch", "trtllm-serve") if place.node else ("trtllm-serve",)
    return Command(
        argv=(*start, model_word(profile, place), *words, "--host", place.host, "--port", str(profile.port)),
        served=served_name(profile),
        metrics="/prometheus/metrics",
    )

"""llama.cpp's server from the `xllamacpp` wheel as a process: `python -m nemolab.engines.llamacpp_server --model ...`.

Takes the options of llama-server that nemolab uses, under llama-server's names, and maps them to the wheel's
`CommonParams`. Runs until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import signal
import sys
from importlib.metadata import version
from typing import Any

# Each streaming response keeps one HTTP thread; without spare ones /health and /metrics would wait behind them.
_SPARE_HTTP_THREADS = 64
_LOG_CAPACITY = 4  # the level at which llama.cpp prints sizes of weights, cache and buffers


def options(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="llamacpp_server", allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ctx-size", type=int, required=True)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--threads-batch", type=int, required=True)
    parser.add_argument("--reasoning-format", choices=("none", "auto", "deepseek"), default="deepseek")
    parser.add_argument("--cache-reuse", type=int, default=0)
    parser.add_argument("--cache-ram", type=int, default=256)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--ubatch-size", type=int)
    return parser.parse_args(argv)


def common_params(chosen: argparse.Namespace) -> Any:
    """The wheel's parameters for the options."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = chosen.model
    params.model_alias = {chosen.alias}
    params.hostnames = [chosen.host]
    params.port = chosen.port
    params.n_ctx = chosen.ctx_size
    params.n_parallel = chosen.parallel
    params.cpuparams.n_threads = chosen.threads
    params.cpuparams_batch.n_threads = chosen.threads_batch
    params.n_threads_http = chosen.parallel + _SPARE_HTTP_THREADS
    params.use_jinja = True
    params.reasoning_format = getattr(
        xllamacpp.common_reasoning_format, f"COMMON_REASONING_FORMAT_{chosen.reasoning_format.upper()}"
    )
    params.n_cache_reuse = chosen.cache_reuse
    params.cache_ram_mib = chosen.cache_ram
    params.n_batch = chosen.batch_size or params.n_batch
    params.n_ubatch = chosen.ubatch_size or params.n_ubatch
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.ui = False
    params.cors_origins = f"http://{chosen.host}"  # no page of another origin reads answers from this server
    params.cors_origins_explicit = True
    params.cors_credentials = False
    params.verbosity = _LOG_CAPACITY
    return params


def main() -> int:
    """Serve until told to stop."""
    chosen = options()
    print(f"nemolab: xllamacpp {version('xllamacpp')}", flush=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    import xllamacpp

    try:
        server = xllamacpp.Server(common_params(chosen))
    except RuntimeError as error:
        print(f"nemolab: llama.cpp did not start: {error}", flush=True)
        return 1
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main())

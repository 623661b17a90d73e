"""Rules on who can reach the server."""

from __future__ import annotations

import re

from nemolab.core.finding import Severity
from nemolab.lint.case import Case, Findings
from nemolab.lint.registry import rule


@rule("R-EXPOSE", "no server for everyone without a key", "vllm", "sglang", "trtllm")
def exposed(case: Case) -> Findings:
    host = case.text("host")
    box = case.launch.container
    keyed = bool(case.option("api_key")) or bool(case.env("VLLM_API_KEY"))
    if keyed:
        key = case.text("api_key")
        if key and not key.startswith("$"):
            yield case.find(
                "R-EXPOSE",
                Severity.WARNING,
                "the API key stands on the command line, where every process list shows it",
                "use VLLM_API_KEY or a file" if case.engine == "vllm" else "read it from a variable",
                "vLLM security documentation",
                "api_key",
            )
        return
    published = box.options.get("--publish", ()) if box else ()
    hostnet = bool(box and box.options.get("--network") == ("host",))
    open_port = any(not re.match(r"(127\.0\.0\.1|localhost|\[::1\]):", port) for port in published)
    wide = host in ("0.0.0.0", "::") or (case.engine == "vllm" and host is None and box is not None)
    if (hostnet and wide) or (published and open_port and (wide or case.engine == "vllm")) or (box is None and wide):
        yield case.find(
            "R-EXPOSE",
            Severity.WARNING,
            "the server listens on every address without a key",
            "publish on 127.0.0.1, or set a key and put a gateway in front; on "
            "vLLM a key guards /v1, /v2 and /inference only",
            "vLLM security documentation",
            "host",
        )
    if case.engine == "vllm" and (path := case.text("allowed_local_media_path")) in ("/", "/home", "/root"):
        yield case.find(
            "R-EXPOSE",
            Severity.WARNING,
            f"--allowed-local-media-path {path}: a request can read any image file below it",
            "name one folder",
            "vLLM multimodal documentation",
            "allowed_local_media_path",
        )

"""An engine that misbehaves on purpose, for faults that a real one cannot be made to produce.

python fake_engine.py [--lines TEXT]... [--listen PORT] [--health STATUS] [--exit CODE] [--deaf] [--escape] [--hold]
"""

from __future__ import annotations

import argparse
import http.server
import os
import signal
import subprocess
import sys
import threading
import time

SLEEP = "import time; time.sleep(600)"
ESCAPE = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True); {SLEEP}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--line", action="append", default=[], help="printed; {NAME} is a variable of the environment")
    parser.add_argument("--listen", type=int)
    parser.add_argument("--health", type=int, default=200)
    parser.add_argument("--exit", type=int)
    parser.add_argument("--deaf", action="store_true", help="ignore SIGTERM")
    parser.add_argument("--escape", action="store_true", help="start a child, and it another, in sessions of their own")
    chosen = parser.parse_args()
    if chosen.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if chosen.escape:
        child = subprocess.Popen([sys.executable, "-c", ESCAPE], start_new_session=True)
        print(f"child {child.pid}", flush=True)
    if chosen.listen is not None:

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(chosen.health)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None: ...

        server = http.server.HTTPServer(("127.0.0.1", chosen.listen), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    for line in chosen.line:
        print(line.format(**os.environ), flush=True)
    if chosen.exit is not None:
        sys.exit(chosen.exit)
    time.sleep(600)


if __name__ == "__main__":
    main()

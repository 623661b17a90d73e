"""Server-sent events as chat servers send them: bytes in, payloads out. No I/O, no clock."""

from __future__ import annotations

DONE = b"[DONE]"


class Events:
    """Splits a byte stream into the payloads of its events, however the network cut it.

    Follows the event-stream format of the HTML standard for `data` fields with LF or CRLF ends of line: several
    `data` lines of one event are joined by a newline, comments (keep-alive pings) and other fields yield nothing.
    """

    __slots__ = ("_data", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Payloads of the events that `piece` completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        out: list[bytes] = []
        for raw in lines:
            line = raw[:-1] if raw.endswith(b"\r") else raw
            if not line:
                if self._data:
                    out.append(b"\n".join(self._data))
                    self._data = []
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        return out

    def close(self) -> list[bytes]:
        """Payloads left when the stream ended: an event whose closing blank line never came."""
        out = self.feed(b"\n\n") if self._rest or self._data else []
        self._rest = b""
        return out

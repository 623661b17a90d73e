"""An endpoint: where an OpenAI-compatible server answers, and what is known of it."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from nemolab.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint.

    Attributes:
        base_url: with the version part, as the openai client takes it: `http://127.0.0.1:8080/v1`.
        model: name to ask for.
        engine: `llamacpp`, `vllm`, `sglang`, `trtllm`, or "" when not recognised.
        engine_version: as the engine prints it, "" when unknown.
        api_key_env: name of the environment variable that holds the key; None where none is needed.
    """

    base_url: str
    model: str
    engine: str = ""
    engine_version: str = ""
    api_key_env: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"not an http URL: {self.base_url!r}", where="base_url", fix="such as http://127.0.0.1:8080/v1"
            )
        if parts.username or parts.password:
            raise UsageError("a URL must not hold a password", where="base_url", fix="name a variable in api_key_env")
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))

    @property
    def root(self) -> str:
        """The server's address without the version part, where `/health`, `/metrics` and `/tokenize` are."""
        return self.base_url.removesuffix("/v1")

    @property
    def loopback(self) -> bool:
        """Whether the server is on this machine."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def key(self) -> str | None:
        """The key, read from the environment at the moment of use.

        Raises:
            UsageError: the variable is named but not set.
        """
        if not self.api_key_env:
            return None
        if value := os.environ.get(self.api_key_env):
            return value
        raise UsageError(
            f"environment variable {self.api_key_env} is not set", where=self.base_url, fix="export it, then run again"
        )

    def headers(self) -> dict[str, str]:
        """HTTP headers of a request: the key, if there is one."""
        key = self.key()
        return {"Authorization": f"Bearer {key}"} if key else {}

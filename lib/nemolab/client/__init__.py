"""Talking to a server: the endpoint, the openai client, exact stream timing, metrics, and the probe's checks."""

from nemolab.client.endpoint import Endpoint

__all__ = ["Endpoint"]

"""Clients of a served model: OpenAI API, stream timing, Prometheus metrics."""

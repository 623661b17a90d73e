"""Findings about a launch before it starts."""

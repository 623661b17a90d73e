"""Staged load, service-level objectives and their statistics."""

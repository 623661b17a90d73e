"""A small checkpoint of the same architecture that really answers."""

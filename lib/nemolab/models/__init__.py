"""Facts about the models as data, and the arithmetic of their architecture."""

"""Words that tasks draw from, where `nemolab.miniature.wording` has none of the kind."""

from __future__ import annotations

_NAMES = """
alma bruno clara dario elena felix greta hugo irene jonas karla lukas marta nils olga pedro rosa sven tilda ursula
viktor wanda yannick zelda
"""
NAMES = tuple(_NAMES.split())

"""The house rules for notebooks: N00x file, N02x text, N04x code, N06x contracts, N08x what shows over all of them."""

from nemolab.notebook.rules import code, contract, file, text
from nemolab.notebook.rules.subject import Rule, Subject, finding

RULES: dict[str, Rule] = {**file.RULES, **text.RULES, **code.RULES, **contract.RULES}

__all__ = ["RULES", "Rule", "Subject", "finding"]

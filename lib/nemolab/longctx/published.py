"""What the maker published for the family at long context, to set beside a measurement: another test, other settings.

Source: NVIDIA's model cards and technical reports of Nemotron 3 (Nano, Super, Ultra), RULER with 100 samples for each
of 13 tasks, chat template, thinking off, temperature 1e-5, top_p 0.99; base models through text completions. The score
is RULER's string match, which knows no precision.
"""

from __future__ import annotations

from typing import Any

from nemolab.core.intervals import percent, wilson

_SAMPLES = 1300  # 13 tasks x 100
_LENGTHS = {"64K": 65536, "128K": 131072, "256K": 262144, "512K": 524288, "1M": 1048576}
# Family, which checkpoint, score in percent by length.
_SCORES: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("nano", "Nano, post-trained", {"256K": 92.92, "512K": 91.25, "1M": 86.34}),
    ("nano", "Nano, base", {"64K": 87.50, "128K": 82.92, "256K": 75.44}),
    ("super", "Super, post-trained", {"256K": 96.30, "512K": 95.67, "1M": 91.75}),
    ("super", "Super, quantisation table, BF16", {"1M": 91.64}),
    ("super", "Super, quantisation table, FP8", {"1M": 91.43}),
    ("super", "Super, quantisation table, NVFP4", {"1M": 91.60}),
    ("ultra", "Ultra, post-trained", {"1M": 94.7}),
    ("ultra", "Ultra, base", {"64K": 95.30, "128K": 92.49, "256K": 86.22, "512K": 84.54, "1M": 76.83}),
)
_CAVEAT = {
    "nano": "its training had synthetic retrieval up to 256K, so RULER is near to what it was trained on",
    "ultra": "its long-context training had no data of RULER's kind",
}


def beside(model: str) -> list[dict[str, Any]]:
    """Published scores of the family that `model` (a served name, path or repository) belongs to; [] for others."""
    from nemolab import models

    known = models.match(model)
    if known is None or known.family not in {family for family, _, _ in _SCORES}:
        return []
    return [
        {
            "checkpoint": name,
            "length": _LENGTHS[at],
            "RULER string match": f"{score:.2f} %",
            "95 % interval, n = 1,300": _interval(score),
            "note": _CAVEAT.get(known.family, ""),
        }
        for family, name, scores in _SCORES
        if family == known.family
        for at, score in scores.items()
    ]


def _interval(score: float) -> str:
    share = wilson(round(score / 100 * _SAMPLES), _SAMPLES)
    return f"[{percent(share.low, '')}, {percent(share.high)}]"

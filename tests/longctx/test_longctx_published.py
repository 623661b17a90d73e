"""Published scores come with n, and only for the family they are of."""

from __future__ import annotations

from nemolab.longctx import published


def test_the_three_precisions_of_super_cannot_be_told_apart() -> None:
    rows = published.beside("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4")
    at_1m = [row["95 % interval, n = 1,300"] for row in rows if row["length"] == 1 << 20]
    assert len(at_1m) == 4
    lows, highs = zip(*(tuple(float(x) for x in text.strip("[] %").split(",")) for text in at_1m), strict=True)
    assert max(lows) < min(highs)


def test_only_for_whom_it_was_published() -> None:
    assert published.beside("/models/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")[0]["checkpoint"] == "Nano, post-trained"
    assert published.beside("miniature") == []
    assert published.beside("some-other-model") == []

"""What the writer of a name may have meant."""

from __future__ import annotations

from nemolab.core.located import nearest


def test_the_nearest_name_or_as_many_as_a_person_reads() -> None:
    assert nearest("lengthz", ["lengths", "tasks"]) == "did you mean 'lengths'?"
    assert nearest("x", ["b", "a"]) == "known: a, b"
    assert nearest("x", []) == "there is none"
    many = [f"run-{n:03}" for n in range(70)]
    assert nearest("x", many).endswith("run-039 and 30 more")
    assert nearest("x", many, "`nemolab list` shows them") == "`nemolab list` shows them"
    assert nearest("run-0O7", many, "`nemolab list` shows them").startswith("did you mean")

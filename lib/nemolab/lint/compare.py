"""What changed between two versions of a command line."""

from __future__ import annotations

from collections.abc import Iterator

from nemolab.lint.schema import Schema

_FIELDS = ("type", "nargs", "choices", "suggested", "default", "required", "deprecated")


def lines(old: Schema, new: Schema) -> Iterator[str]:
    """One line a change: `+` came, `-` went, `~` differs; options first, then variables and registered names."""
    yield from (f"- {name}" for name in sorted(set(old.spellings) - set(new.spellings)))
    yield from (f"+ {name}" for name in sorted(set(new.spellings) - set(old.spellings)))
    for name in sorted(set(old.flags) & set(new.flags)):
        before, after = old.flags[name], new.flags[name]
        for field in _FIELDS:
            one, two = getattr(before, field), getattr(after, field)
            if one == two:
                continue
            if field in ("choices", "suggested") and one and two:
                gone, came = sorted(set(one) - set(two)), sorted(set(two) - set(one))
                yield f"~ {name} {field}: {' '.join([*(f'-{v}' for v in gone), *(f'+{v}' for v in came)])}"
            else:
                yield f"~ {name} {field}: {_short(one)} -> {_short(two)}"
    yield from (f"- variable {name}" for name in sorted(set(old.env) - set(new.env)))
    yield from (f"+ variable {name}" for name in sorted(set(new.env) - set(old.env)))
    for table in sorted(set(old.registries) | set(new.registries)):
        one, two = set(old.registries.get(table, ())), set(new.registries.get(table, ()))
        if change := [*(f"-{v}" for v in sorted(one - two)), *(f"+{v}" for v in sorted(two - one))]:
            yield f"~ names of {table}: {' '.join(change)}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."

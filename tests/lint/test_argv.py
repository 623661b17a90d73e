"""The readers against the engines' own parsers: recorded results, drawn and recombined by hypothesis."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemolab.lint import argv as reader
from nemolab.lint.schema import Schema, load
from nemolab.lint.values import BadKey, Unreadable, convert, in_choices

ORACLES = sorted((Path(__file__).parent / "oracle").glob("*.json.gz"))


@cache
def oracle(path: Path) -> tuple[Schema, list[dict[str, Any]]]:
    document = json.loads(gzip.decompress(path.read_bytes()))
    return load(document["engine"], document["version"]), document["rows"]


def ours(schema: Schema, argv: list[str]) -> dict[str, Any] | str:
    """What our reader makes of a command line: values by the engine's name of the setting, or why it is refused."""
    reading = reader.read(schema, argv)
    if schema.engine == "vllm" and not reading.positionals and [p.kind for p in reading.problems] == ["value"]:
        reading.positionals = [
            (reading.problems.pop().detail[0], 0)
        ]  # `--flag true` without a model: true is the model
    if reading.problems:
        return f"{reading.problems[0].kind}: {reading.problems[0].word}"
    values: dict[str, Any] = {}
    if reading.positionals:
        values["model_tag"] = reading.positionals[0][0]
    for option in reading.options:
        flag = option.flag
        if flag.name == "--help":
            return "help"
        if flag.refused is not None:
            return f"refused: {flag.name}"
        if flag.nargs == 0:
            values[flag.dest] = not option.negative
            continue
        try:
            read = [convert(schema, flag, text) for text in option.values]
        except (Unreadable, BadKey) as error:
            return f"value: {error}"
        if not all(in_choices(flag, value) for value in read):
            return f"choice: {option.values}"
        values[flag.dest] = read if flag.nargs in ("+", "*") else read[0] if read else True
    if schema.engine == "sglang" and "model_path" not in values:
        return "required: --model-path"
    return values


def agrees(schema: Schema, row: dict[str, Any]) -> str | None:
    """None when both accept or both refuse, with the same values; else how they differ."""
    if "Config file must be" in row.get("error", ""):
        return None  # the parser went on to read the file
    mine = ours(schema, row["argv"])
    if "error" in row:
        return None if isinstance(mine, str) else f"the parser refuses ({row['error'][:120]}), we read {mine}"
    if isinstance(mine, str):
        return f"the parser accepts, we refuse: {mine}"
    for dest, value in row["values"].items():
        if value == "(object)" or dest not in mine or isinstance(value, dict | list):
            continue
        have = mine[dest]
        if isinstance(have, list) or str(have) == str(value):
            continue
        if value is True and any(f.dest == dest and f.deprecated is not None for f in schema.flags.values()):
            continue  # an old valued flag that now sets a switch
        if not _same_number(have, value):
            return f"{dest} is {value!r} there and {have!r} here"
    return None


def _same_number(one: Any, two: Any) -> bool:
    try:
        return float(one) == float(two)
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize("path", ORACLES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_recorded_line_is_read_as_the_engine_reads_it(path: Path) -> None:
    schema, rows = oracle(path)
    wrong = [(" ".join(row["argv"]), difference) for row in rows if (difference := agrees(schema, row))]
    assert not wrong, "\n".join(f"{line}\n    {difference}" for line, difference in wrong[:20])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_accepted_lines_stay_accepted_when_joined(data: st.DataObject) -> None:
    """Options of two accepted lines make an accepted line: argparse reads options independently of each other."""
    schema, rows = oracle(data.draw(st.sampled_from(ORACLES)))
    fine = [row for row in rows if "values" in row and row["argv"] and not row["argv"][0].startswith("-")]
    if schema.engine == "sglang":
        fine = [row for row in rows if "values" in row and row["argv"][:1] == ["--model-path"]]
    one, two = data.draw(st.sampled_from(fine)), data.draw(st.sampled_from(fine))
    tail = two["argv"][2:] if schema.engine == "sglang" else two["argv"][1:]
    if "--" in tail or "--" in one["argv"] or any(word in {"x", "y"} for word in tail):
        return
    joined = ours(schema, [*one["argv"], *tail])
    if isinstance(joined, str):
        assert "dotted" in joined or "." in " ".join(one["argv"]), (one["argv"], tail, joined)
        return
    for dest, value in ours(schema, two["argv"]).items():  # type: ignore[union-attr]
        if dest not in ("model_tag", "model_path") and not isinstance(value, dict):
            assert joined[dest] == value, (one["argv"], tail, dest)


@settings(max_examples=300, deadline=None)
@given(
    path=st.sampled_from(ORACLES),
    words=st.lists(st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
        ["--", "-", "-O", "-O3", "--max-model-len", "--a.b", "-cc.", "=", "--=", "--model", "-tp", "-1", "--x=y"]
    ), max_size=8),
)  # fmt: skip
def test_never_raises(path: Path, words: list[str]) -> None:
    schema, _ = oracle(path)
    ours(schema, words)

"""The examination: its cases, its counting, its parameters, its command."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from nemolab.cli.miniature import miniature as command
from nemolab.core.errors import NemolabError, UsageError
from nemolab.miniature import cases, checkpoint_folder, evaluate, look, wording
from nemolab.miniature.evaluate import Examination, Outcome
from nemolab.miniature.params import EvaluateParams, TrainParams

TOKENS = cases.counter(checkpoint_folder())
SMALL = Examination(lengths=(512, 8192), texts=(2, 1), present=4, absent=2, short=2, seed=1)


def outcome(ability: str = "number", *, right: bool = True, length: int = 512, depth: float | None = 0.5) -> Outcome:
    return Outcome(ability, "noise", length, depth, False, "1", right, True, length, "" if right else "2")


def test_cases_are_deterministic_and_counted() -> None:
    first, second = list(SMALL.all(TOKENS)), list(SMALL.all(TOKENS))
    assert first == second
    assert len(first) == SMALL.count == 4 * 2 + 3 * 6


@pytest.mark.parametrize("haystack", range(3))
def test_a_text_fits_its_length_and_holds_what_is_asked(haystack: int) -> None:
    made = list(cases.retrieval(2048, haystack, present=6, absent=2, seed=4, tokens=TOKENS))
    texts = {case.messages[0]["content"].rsplit("\n\n", 1)[0] for case in made}
    assert len(texts) == 1
    for case in made:
        content = case.messages[0]["content"]
        assert 2048 - 80 <= TOKENS(content) + cases.TEMPLATE_TOKENS <= 2048
        if case.ability == "absent":
            assert case.expected == wording.REFUSAL
        else:
            assert content.count(case.expected) == 1
            assert case.depth is not None
            at = content.index(case.expected) / len(content)
            assert at == pytest.approx(case.depth, abs=0.12)
    assert {case.thinking for case in made} == {True, False}


def test_depths_cover_the_text() -> None:
    made = [case for n in range(3) for case in cases.retrieval(4096, n, present=8, absent=0, seed=2, tokens=TOKENS)]
    assert {min(int((case.depth or 0) * 5), 4) for case in made} == {0, 1, 2, 3, 4}


def test_shares_are_counted_where_they_belong() -> None:
    outcomes = [outcome(), outcome(right=False, length=8192, depth=0.99), outcome("absent", depth=None)]
    assert str(evaluate.by_length(outcomes)[512]).startswith("100 %")
    assert evaluate.by_length(outcomes)[8192].value == 0
    assert evaluate.by_depth(outcomes)[0.8, 1.0].n == 1
    assert evaluate.by_ability(outcomes)["absent"].value == 1
    assert evaluate.by_ability(outcomes)["stops by itself"].n == 3


def test_a_missed_limit_is_a_finding_and_the_verdict() -> None:
    good = [outcome() for _ in range(99)] + [outcome("absent", depth=None)]
    assert look.evaluation_results(good).good
    assert [finding.code for finding in look.findings(good)] == ["M-cluster"]
    bad = [*good, outcome(right=False), outcome(right=False)]
    assert not look.evaluation_results(bad).good
    assert look.findings(bad)[0].code == "M-limit"
    assert look.wrong_rows(bad)[0]["answer"] == "2"
    forgot = [*good, outcome("absent", right=False, depth=None)]
    assert not look.evaluation_results(forgot).good
    assert not look.evaluation_results([]).good


def test_what_was_not_asked_is_null_and_not_zero() -> None:
    values = look.evaluation_results([outcome()])
    assert values.at_32k is None
    assert values.absent is None
    assert values.to_8k == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lengths": "512,x"}, "is not numbers"),
        ({"lengths": "512", "texts": "1,2"}, "1 lengths need 1"),
        ({"lengths": "100", "texts": "1"}, "lengths go from 256"),
    ],
)
def test_parameters_refuse(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EvaluateParams(**given)  # type: ignore[arg-type]


def test_an_unreachable_server_is_one_clear_error() -> None:
    with pytest.raises(UsageError, match="base_url is not set"):
        evaluate.examine("", "m", SMALL, timeout_s=5)
    with pytest.raises(NemolabError, match=r"127\.0\.0\.1:9/v1 \(multi-turn, 0 tokens\)"):
        evaluate.examine("http://127.0.0.1:9/v1", "m", SMALL, timeout_s=5)


def test_export_command_writes_both_forms(tmp_path: Path) -> None:
    run = CliRunner().invoke
    assert run(command, ["export", "--out", str(tmp_path / "m.gguf"), "--file-type", "F16"]).exit_code == 0
    assert (tmp_path / "m.gguf").read_bytes()[:4] == b"GGUF"
    assert run(command, ["export", "--out", str(tmp_path / "folder")]).exit_code == 0
    shipped = {path.name for path in checkpoint_folder().iterdir()}
    assert {path.name for path in (tmp_path / "folder").iterdir()} == shipped
    again = run(command, ["export", "--out", str(tmp_path / "folder")])
    assert isinstance(again.exception, UsageError)


def test_eval_command_refuses_bad_lengths() -> None:
    refused = CliRunner().invoke(command, ["eval", "--lengths", "12,abc"])
    assert isinstance(refused.exception, UsageError)


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_train_command_without_torch_prints_nothing_but_what_to_install(tmp_path: Path) -> None:
    refused = CliRunner().invoke(command, ["train", "--smoke", "--out", str(tmp_path / "out")])
    assert isinstance(refused.exception, UsageError)
    assert refused.output == ""
    assert list(tmp_path.iterdir()) == []


def test_train_parameters_default_to_the_shipped_log() -> None:
    assert TrainParams().train == "shipped"

"""Training: the shipped log, and a training of seconds where torch is installed."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from nemolab.core.errors import UsageError
from nemolab.miniature import checkpoint_folder, config, look, tensors, training
from nemolab.miniature.config import MiniatureConfig

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (extra `train`)")
needs_transformers = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("transformers") is None,
    reason="torch and transformers are not installed (extra `train`)",
)
TEMPLATE = (checkpoint_folder() / "chat_template.jinja").read_text()


def test_the_shipped_record_says_when_where_and_with_what() -> None:
    trained = training.obtain("shipped")
    values = look.training_results(trained)
    assert values.parameters == MiniatureConfig().parameters
    assert values.steps == sum(phase["steps"] for phase in trained.record["plan"]["phases"])
    assert values.accuracy >= 0.99
    assert {"date", "device", "torch", "python", "seconds"} <= set(trained.record)
    assert [row["step"] for row in look.curve_rows(trained.log)][-1] == values.steps


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_training_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="uv sync --extra train"):
        training.run(tmp_path / "out", smoke=True)
    assert list(tmp_path.iterdir()) == []


@needs_torch
def test_the_shipped_plan_is_the_one_in_the_code() -> None:
    from nemolab.miniature.train import FULL

    phases = training.obtain("shipped").record["plan"]["phases"]
    assert [phase["steps"] for phase in phases] == [phase.steps for phase in FULL.phases]
    assert [tuple(phase["lengths"]) for phase in phases] == [phase.lengths for phase in FULL.phases]


@needs_torch
def test_smoke_training_learns_resumes_and_exports(tmp_path: Path) -> None:
    from nemolab.miniature import train

    lines: list[str] = []
    folder = train.train(train.SMOKE, tmp_path / "a", TEMPLATE, progress=lambda step, steps, line: lines.append(line))
    losses = [json.loads(line)["loss"] for line in (folder / train.LOG).read_text().splitlines()]
    assert losses[-1] < losses[0]
    assert len(lines) == 2
    shapes = {name: array.shape for name, array in tensors.load(folder).items()}
    assert shapes == config.read(folder).tensor_shapes()

    class Cut(Exception):
        pass

    def cut(step: int, steps: int, line: str) -> None:
        if step > 5:
            raise Cut

    with pytest.raises(Cut):
        train.train(train.SMOKE, tmp_path / "b", TEMPLATE, progress=cut)
    train.train(train.SMOKE, tmp_path / "b", TEMPLATE)
    assert (tmp_path / "b" / tensors.FILE).read_bytes() == (folder / tensors.FILE).read_bytes()


@needs_torch
def test_batches_are_pure_in_their_number() -> None:
    import torch

    from nemolab.miniature import tokenizer, train

    vocabulary = tokenizer.build(TEMPLATE, MiniatureConfig().vocab_size, conversations=200)
    first, second = (train.Batches(train.SMOKE, TEMPLATE, vocabulary)[3] for _ in range(2))
    assert torch.equal(first[0], second[0])
    other = train.Batches(replace(train.SMOKE, seed=1), TEMPLATE, vocabulary)[3]
    assert first[0].shape != other[0].shape or not torch.equal(first[0], other[0])


@needs_torch
def test_the_chunked_scan_is_the_recurrence() -> None:
    import torch

    from nemolab.miniature.model import state_space_scan

    torch.manual_seed(0)
    batch, length, groups, heads, channels, state = 2, 150, 2, 2, 8, 16
    x = torch.randn(batch, length, groups, heads, channels, dtype=torch.float64)
    dt, a = torch.rand(batch, length, groups, heads).double(), -3 * torch.rand(groups, heads).double()
    b, c = torch.randn(2, batch, length, groups, state, dtype=torch.float64)
    h = torch.zeros(batch, groups, heads, channels, state, dtype=torch.float64)
    steps = []
    for t in range(length):
        h = h * (dt[:, t] * a).exp()[..., None, None]
        h = h + (x[:, t] * dt[:, t, ..., None])[..., None] * b[:, t][:, :, None, None, :]
        steps.append((h * c[:, t][:, :, None, None, :]).sum(-1))
    assert torch.allclose(state_space_scan(x, dt, a, b, c), torch.stack(steps, 1), atol=1e-10)


@needs_transformers
def test_transformers_loads_the_folder_and_agrees() -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from nemolab.miniature.model import Miniature

    folder = checkpoint_folder()
    reader = AutoTokenizer.from_pretrained(folder)
    text = reader.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True)
    assert text.endswith("<think>\n")
    ids = reader(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ours = Miniature(config.read(folder)).eval()
    ours.load_state_dict({name: value.float() for name, value in load_file(folder / tensors.FILE).items()})
    with torch.no_grad():
        assert torch.allclose(theirs(ids).logits, ours(ids), atol=1e-3)

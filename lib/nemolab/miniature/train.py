"""Training (extra `train`): a curriculum of lengths, deterministic by seed, resumable, with a log to draw."""

# mypy: disable-error-code="misc"
# torch is untyped here: it is an extra, and its classes are Any where it is not installed.

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from nemolab.core.files import write_json
from nemolab.miniature import data, tokenizer
from nemolab.miniature.config import IM_END, PAD, MiniatureConfig
from nemolab.miniature.model import Miniature
from nemolab.miniature.tensors import FILE

LOG, CHECKPOINT, RECORD = "training.jsonl", "checkpoint.pt", "training.json"


@dataclass(frozen=True, slots=True)
class Phase:
    """Steps of one kind: each takes a length of `lengths` (by `shares`) and as many sequences as fill `tokens`."""

    steps: int
    tokens: int
    lengths: tuple[int, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a training run does.

    Attributes:
        context_weight: weight of tokens outside answers in the loss; answers weigh 1.
        seconds: limit; the learning rate reaches its end at the last step or at the limit, whichever comes first.
        workers: processes that write conversations.
    """

    phases: tuple[Phase, ...]
    seed: int = 0
    learning_rate: float = 2e-3
    warm_up: int = 100
    weight_decay: float = 0.1
    context_weight: float = 0.02
    seconds: float = math.inf
    workers: int = 14
    report_every: int = 50
    save_every: int = 500

    @property
    def steps(self) -> int:
        """Steps of all phases."""
        return sum(phase.steps for phase in self.phases)

    def step(self, index: int) -> tuple[int, int]:
        """Length and number of sequences of step `index`."""
        rest = index
        for phase in self.phases:
            if rest < phase.steps:
                length = Random(f"{self.seed}/length/{index}").choices(phase.lengths, phase.shares)[0]
                return length, max(1, phase.tokens // length)
            rest -= phase.steps
        raise IndexError(index)


SMOKE = Plan(phases=(Phase(10, 1024, (128, 256), (0.5, 0.5)),), workers=0, report_every=5, save_every=5, warm_up=5)
FULL = Plan(  # the shipped weights: 380 s on one H200
    phases=(
        Phase(3020, 49_152, (384,), (1.0,)),
        Phase(1100, 49_152, (384, 1024), (0.3, 0.7)),
        Phase(840, 65_536, (512, 2048, 4096), (0.2, 0.3, 0.5)),
        Phase(430, 65_536, (1024, 4096, 16_384), (0.2, 0.4, 0.4)),
    )
)


class Batches(Dataset[tuple[Tensor, Tensor]]):
    """Batch number i of a plan: ids and loss weights, both (sequences, length + 1). Pure in (plan, i)."""

    def __init__(self, plan: Plan, template: str, vocabulary: Tokenizer) -> None:
        self.plan, self.template, self.vocabulary = plan, template, vocabulary.to_str()
        self._encode: Encoder | None = None

    def __len__(self) -> int:
        return self.plan.steps

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if self._encode is None:
            self._encode = Encoder(self.template, Tokenizer.from_str(self.vocabulary))
        length, sequences = self.plan.step(index)
        seeds = (f"{self.plan.seed}/train/{index}/{sequence}" for sequence in range(sequences))
        return self._encode.batch(seeds, length, self.plan.context_weight)


class Encoder:
    """Conversations to ids and weights."""

    def __init__(self, template: str, vocabulary: Tokenizer) -> None:
        self._render, self._vocabulary = tokenizer.renderer(template), vocabulary
        self._think, self._end_think = (vocabulary.token_to_id(mark) for mark in ("<think>", "</think>"))
        self._header = vocabulary.encode("<|im_start|>assistant\n").ids

    def tokens(self, text: str) -> int:
        """Number of tokens of `text`."""
        return len(self._vocabulary.encode(text, add_special_tokens=False).ids)

    def batch(self, seeds: Iterator[str], length: int, context_weight: float) -> tuple[Tensor, Tensor]:
        """One conversation a seed, cut or padded to `length` + 1 tokens."""
        rows = [self._row(seed, length, context_weight) for seed in seeds]
        ids, weights = zip(*rows, strict=True)
        return torch.from_numpy(np.stack(ids)), torch.from_numpy(np.stack(weights))

    def _row(self, seed: str, length: int, context_weight: float) -> tuple[np.ndarray, np.ndarray]:
        text = self._render(data.conversation(Random(seed), length, self.tokens))
        ids = self._vocabulary.encode(text, add_special_tokens=False).ids[: length + 1]
        weights = np.full(length + 1, 0.0, dtype=np.float32)
        weights[: len(ids)] = context_weight
        for start, end in self.answers(ids):
            weights[start:end] = 1.0
        return np.array(ids + [PAD] * (length + 1 - len(ids)), dtype=np.int64), weights

    def answers(self, ids: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Where the model speaks: from after the prompt's think tag up to and with <|im_end|>."""
        width = len(self._header)
        for start in range(len(ids) - width):
            if list(ids[start : start + width]) == self._header:
                first = start + width + 2  # "<think>\\n" or "<think></think>"
                end = next((i for i in range(first, len(ids)) if ids[i] == IM_END), len(ids) - 1)
                yield first, end + 1


def accuracy(model: Miniature, encode: Encoder, seed: str, length: int, sequences: int) -> float:
    """Share of answers that greedy next-token choice gets right from first to last token (teacher forced)."""
    device = next(model.parameters()).device
    ids, _ = encode.batch((f"{seed}/{i}" for i in range(sequences)), length, 0.0)
    model.eval()
    right, asked = 0, 0
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
        for row_ids in ids:
            guess = model(row_ids[None, :-1].to(device)).argmax(-1)[0].cpu()
            good = (guess == row_ids[1:]).numpy()
            for start, end in encode.answers(row_ids.tolist()):
                if row_ids[end - 1] != IM_END:  # cut off
                    continue
                asked += 1
                right += bool(good[start - 1 : end - 1].all())
    model.train()
    return right / max(asked, 1)


def train(plan: Plan, folder: Path, template: str, *, progress: Callable[[int, int, str], None] | None = None) -> Path:
    """Train by `plan` and leave a checkpoint that transformers, vLLM and the GGUF export read.

    A run that was cut off goes on from its last checkpoint when called again with the same plan and folder.

    Args:
        folder: gets the checkpoint's files, training.jsonl (one line a report), training.json and checkpoint.pt.
        template: the chat template.
        progress: called with (step, steps, line) after every report.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(plan.seed)
    folder.mkdir(parents=True, exist_ok=True)
    shape = MiniatureConfig()
    vocabulary = tokenizer.build(template, shape.vocab_size)
    tokenizer.save(vocabulary, template, folder)
    write_json(folder / "config.json", shape.hf())
    encode = Encoder(template, vocabulary)
    model = Miniature(shape).to(device)
    optimizer = _optimizer(model, plan, device)
    first, spent = _resume(folder / CHECKPOINT, plan, model, optimizer)
    batches = DataLoader(
        Batches(plan, template, vocabulary),
        batch_size=None,
        sampler=range(first, plan.steps),
        num_workers=plan.workers,
        prefetch_factor=4 if plan.workers else None,
        pin_memory=device.type == "cuda",
    )
    began = time.monotonic() - spent
    seen = 0
    for step, (ids, weights) in enumerate(batches, start=first):
        elapsed = time.monotonic() - began
        done = max(step / plan.steps, elapsed / plan.seconds)
        if done >= 1:
            break
        rate = (
            plan.learning_rate
            * min(1, (step + 1) / plan.warm_up)
            * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        )
        loss = _step(model, optimizer, ids.to(device, non_blocking=True), weights.to(device, non_blocking=True), rate)
        seen += ids.numel()
        if (step + 1) % plan.report_every == 0 or step + 1 == plan.steps:
            line = {
                "step": step + 1,
                "seconds": round(time.monotonic() - began, 1),
                "length": ids.shape[1] - 1,
                "tokens": seen,
                "loss": round(loss.item(), 4),
                "learning_rate": round(rate, 6),
                "accuracy": round(accuracy(model, encode, f"{plan.seed}/test", min(ids.shape[1] - 1, 1024), 16), 4),
            }
            with (folder / LOG).open("a") as log:
                log.write(json.dumps(line) + "\n")
            if progress:
                progress(step + 1, plan.steps, f"loss {line['loss']}, {line['accuracy']:.1%} of answers right")
        if (step + 1) % plan.save_every == 0:
            _save(folder / CHECKPOINT, plan, step + 1, time.monotonic() - began, model, optimizer)
    save_weights(model, folder)
    write_json(folder / RECORD, _record(plan, model, device, time.monotonic() - began))
    return folder


def _step(model: Miniature, optimizer: torch.optim.Optimizer, ids: Tensor, weights: Tensor, rate: float) -> Tensor:
    for group in optimizer.param_groups:
        group["lr"] = rate
    with torch.autocast(ids.device.type, torch.bfloat16):
        logits = model(ids[:, :-1])
    losses = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    share = weights[:, 1:].flatten()
    loss = (losses * share).sum() / share.sum()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


def _optimizer(model: Miniature, plan: Plan, device: torch.device) -> torch.optim.Optimizer:
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    free = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": plan.weight_decay}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=plan.learning_rate, betas=(0.9, 0.95), fused=device.type == "cuda")


def _save(
    path: Path, plan: Plan, step: int, seconds: float, model: Miniature, optimizer: torch.optim.Optimizer
) -> None:
    state = {"plan": repr(plan), "step": step, "seconds": seconds}
    torch.save(state | {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def _resume(path: Path, plan: Plan, model: Miniature, optimizer: torch.optim.Optimizer) -> tuple[int, float]:
    """Step to go on with and seconds already spent."""
    if not path.is_file():
        path.with_name(LOG).unlink(missing_ok=True)
        return 0, 0.0
    state = torch.load(path, weights_only=True)
    if state["plan"] != repr(plan):
        path.with_name(LOG).unlink(missing_ok=True)
        return 0, 0.0
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"], state["seconds"]


def save_weights(model: Miniature, folder: Path) -> None:
    """Write model.safetensors: matrices in bfloat16, what is small or sensitive in float32."""
    exact = ("A_log", "dt_bias", ".D", "e_score_correction_bias", "norm", "gate.weight", "conv1d")
    tensors = {
        name: (value.float() if any(part in name for part in exact) else value.to(torch.bfloat16)).cpu().contiguous()
        for name, value in model.state_dict().items()
    }
    save_file(tensors, str(folder / FILE), metadata={"format": "pt"})


def _record(plan: Plan, model: Miniature, device: torch.device, seconds: float) -> dict[str, Any]:
    """When, where, with what and for how long."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds),
        "parameters": sum(t.numel() for t in model.state_dict().values()),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "CPU",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "plan": asdict(plan) | {"seconds": plan.seconds if math.isfinite(plan.seconds) else None},
    }

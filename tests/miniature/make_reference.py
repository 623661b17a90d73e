"""Writes reference.json: what the torch model, in float32, chooses after some prompts. Needs torch; run by hand.

python tests/miniature/make_reference.py
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from nemolab.miniature import cases, checkpoint_folder, config, tensors, tokenizer
from nemolab.miniature.model import Miniature

REFERENCE = Path(__file__).parent / "reference.json"


def main() -> None:
    folder = checkpoint_folder()
    model = Miniature(config.read(folder)).eval()
    model.load_state_dict({name: value.float() for name, value in load_file(folder / tensors.FILE).items()})
    vocabulary = Tokenizer.from_file(str(folder / "tokenizer.json"))
    render = tokenizer.renderer((folder / "chat_template.jinja").read_text())
    texts = cases.retrieval(700, 1, present=6, absent=2, seed=3, tokens=cases.counter(folder))
    prompts = []
    for case in [*texts, *list(cases.short(2, seed=3))]:
        if any("tool_calls" in message for message in case.messages):
            continue
        text = render.prompt(list(case.messages), thinking=case.thinking, tools=list(case.tools) or None)
        ids = vocabulary.encode(text, add_special_tokens=False).ids
        chosen, margins = greedy(model, ids)
        prompts.append({"ability": case.ability, "ids": ids, "chosen": chosen, "margin": round(min(margins), 3)})
    weights = hashlib.sha256((folder / tensors.FILE).read_bytes()).hexdigest()
    REFERENCE.write_text(json.dumps({"weights": weights, "torch": torch.__version__, "prompts": prompts}) + "\n")
    print(len(prompts), min(prompt["margin"] for prompt in prompts))


def greedy(model: Miniature, ids: list[int], limit: int = 80) -> tuple[list[int], list[float]]:
    """Tokens chosen until <|im_end|>, and how far each lies above the second."""
    chosen: list[int] = []
    margins: list[float] = []
    with torch.no_grad():
        while len(chosen) < limit and (not chosen or chosen[-1] != config.IM_END):
            top = model(torch.tensor([ids + chosen]))[0, -1].topk(2)
            (first, second), token = top.values.tolist(), int(top.indices[0])
            margins.append(first - second)
            chosen.append(token)
    return chosen, margins


if __name__ == "__main__":
    main()

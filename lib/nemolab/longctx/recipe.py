"""A prompt as one line: what makes it again, and the digest that proves it is the same."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from nemolab import __version__
from nemolab.core.errors import NemolabError, UsageError
from nemolab.longctx import tasks
from nemolab.longctx.build import Builder, Prompt

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a prompt is made of.

    Attributes:
        tokens: of the whole prompt, the server's template included.
        overhead: tokens of that template.
        depths: wanted, of the needles.
        questions: asked of the text; `question` is the number of this one, from 0.
        documents: text files that the needles hide in, by path.
        tokenizer: sha256 of the tokenizer.json.
        version: of nemolab.
        sha256: of the text; "" before it was built.
    """

    task: str
    seed: int
    tokens: int
    overhead: int
    depths: tuple[float, ...]
    questions: int
    question: int
    tokenizer: str
    documents: tuple[str, ...] = ()
    version: str = __version__
    sha256: str = ""

    def line(self) -> str:
        """The recipe as one line of JSON."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, sort_keys=True, ensure_ascii=False)


def read(line: str) -> Recipe:
    """The recipe in a line.

    Raises:
        UsageError: it is none, or of another version of the format.
    """
    try:
        document: dict[str, Any] = json.loads(line)
        if document.pop("schema") != SCHEMA or set(document) - {field.name for field in fields(Recipe)}:
            raise ValueError("another format")
        return Recipe(**document | {name: tuple(document[name]) for name in ("depths", "documents")})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"not a recipe: {error}", where="recipe", fix="`nemolab longctx build` writes one") from None


def prepare(recipe: Recipe, builder: Builder) -> Prompt:
    """Make the prompt of a recipe.

    Raises:
        UsageError: the recipe is of another tokenizer, or asks for a question that its task does not have.
        NemolabError: what comes out is not the text that the recipe was written for.
    """
    if recipe.tokenizer and recipe.tokenizer != builder.counter.sha256:
        raise UsageError("this recipe is of another tokenizer", where=recipe.task, fix="give the tokenizer it names")
    sample = tasks.make(recipe.task, recipe.seed, recipe.depths, recipe.questions, tuple(map(Path, recipe.documents)))
    if not 0 <= recipe.question < len(sample.questions):
        raise UsageError(
            f"no question {recipe.question}", where=recipe.task, fix=f"from 0 to {len(sample.questions) - 1}"
        )
    prompt = builder.build(sample, recipe.tokens, recipe.overhead)[recipe.question]
    if recipe.sha256 and recipe.sha256 != prompt.sha256:
        raise NemolabError(
            "the recipe makes another text than it did",
            where=recipe.task,
            fix=f"it was written by nemolab {recipe.version}, and documents must not have changed",
        )
    return prompt

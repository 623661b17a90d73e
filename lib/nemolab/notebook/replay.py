"""Recorded calls: a measurement is stored beside the report, and read instead of made when the report is replayed.

Live, `recorded(fn)(...)` calls `fn` and stores what it returned. In replay (`NEMOLAB_REPLAY=1`) it reads. The key of a
recording is the function's source (without comments, docstrings and layout) and its arguments, so a recording never
answers for another function or another question. Replay serves validation, demonstration and training; it is never a
measurement, and says so: on the terminal of the runner, in the HTML report, and in the notebook when a person looks.
The outputs themselves stay free of the banner, for they must equal the outputs of the measurement.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, get_type_hints

from nemolab.core import step
from nemolab.core.errors import NemolabError
from nemolab.core.files import write_atomic, write_json
from nemolab.core.secrets import find_key_shapes
from nemolab.notebook import frontend, progress
from nemolab.notebook.committed import CommittedRun, open_run

__all__ = ["CommittedRun", "open_run", "recorded"]

A = ParamSpec("A")
R = TypeVar("R")
SCHEMA = 1
FOLDER = "recordings"
_SHOWN = 120  # characters of an argument that a recording repeats, so that an error can say what changed

_calls: Counter[Path] = Counter()  # how often each call was made in this kernel: a repeated measurement is another one
_announced: set[str] = set()


def recorded(function: Callable[A, R], *, ignore: Sequence[str] = ()) -> Callable[A, R]:
    """`function`, sync or async, recorded when run live and replayed from its recording.

    Args:
        function: a named function whose return type is annotated with what pydantic can write as JSON.
        ignore: arguments that do not belong to the question, such as a progress callback.

    Raises:
        NemolabError: here, if it is not such a function; on a call, if an argument cannot be a key, the value has
            the shape of a key, or, in replay, no whole recording matches. The message says what changed.
    """
    adapter = _adapter(function)
    source = _source_digest(function)

    def begin(args: Any, kwargs: Any) -> _Call:
        return _Call.of(function, source, _arguments(function, args, kwargs, ignore))

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaiting(*args: A.args, **kwargs: A.kwargs) -> Any:
            call = begin(args, kwargs)
            if call.answered():
                return call.read(adapter)
            return call.write(await function(*args, **kwargs), adapter)

        return awaiting  # type: ignore[return-value]

    @functools.wraps(function)
    def calling(*args: A.args, **kwargs: A.kwargs) -> R:
        call = begin(args, kwargs)
        if call.answered():
            return call.read(adapter)  # type: ignore[no-any-return]
        return call.write(function(*args, **kwargs), adapter)  # type: ignore[no-any-return]

    return calling


class _Call:
    """One call of a recorded function and the file that belongs to it."""

    def __init__(self, name: str, source: str, arguments: dict[str, Any], path: Path) -> None:
        self.name, self.source, self.path = name, source, path
        self.arguments = {key: _digest(value) for key, value in arguments.items()}
        self.shown = {key: _text(value)[:_SHOWN] for key, value in arguments.items()}

    @classmethod
    def of(cls, function: Callable[..., Any], source: str, arguments: dict[str, Any]) -> _Call:
        name = f"{function.__module__}.{function.__qualname__}"
        key = _digest([name, source, arguments])[:16]
        folder = step.current().folder / FOLDER / frontend.notebook_name()
        first = folder / f"{function.__name__}-{key}.json"
        _calls[first] += 1
        path = first if _calls[first] == 1 else first.with_suffix(f".{_calls[first]}.json")
        if frontend.person_is_there() and not (step.current().replay and path.exists()):
            path = first  # a cell run again in JupyterLab is the same measurement, not a second one
        return cls(name, source, arguments, path)

    def answered(self) -> bool:
        """Whether the call is read: in replay always; else when one of the earlier runs that were named made the same
        call, whose recording is then this run's."""
        here = step.current()
        for folder in () if here.replay else here.recorded:
            earlier = folder / self.path.relative_to(here.folder)
            if earlier.is_file():
                write_atomic(self.path, earlier.read_bytes())
                return True
        return here.replay

    def write(self, value: Any, adapter: Any) -> Any:
        """Store `value`; return it as a replay would, so that both see the same."""
        stored = adapter.dump_python(value, mode="json")
        text = _text(stored)
        if hits := find_key_shapes(text + _text(self.shown)):
            raise NemolabError(
                f"the value of {self.name} has the shape of a key ({hits[0][0]}) and was not stored",
                where=self.path.name,
                fix="return only what was measured",
            )
        document = {
            "schema": SCHEMA,
            "function": self.name,
            "source": self.source,
            "arguments": self.arguments,
            "arguments_shown": self.shown,
            "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
            "value": stored,
            "value_sha256": _digest(stored),
        }
        write_json(self.path, document)
        return adapter.validate_json(text)

    def read(self, adapter: Any) -> Any:
        """The recorded value."""
        from pydantic import ValidationError

        try:
            document = json.loads(self.path.read_bytes())
            whole = _digest(document["value"]) == document["value_sha256"] and document["schema"] == SCHEMA
            value = adapter.validate_json(_text(document["value"])) if whole else None
        except FileNotFoundError:
            raise self._no_match() from None
        except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
            raise self._error(f"the recording is damaged: {error}") from None
        if not whole:
            raise self._error("the recording was edited: its value does not have its digest")
        _announce(str(document["recorded"]))
        return value

    def _no_match(self) -> NemolabError:
        others = [_load(path) for path in sorted(self.path.parent.glob(f"{self.path.name.split('-')[0]}-*.json"))]
        others = [other for other in others if other.get("function") == self.name]
        if not others:
            return self._error(f"{self.name} was not recorded")
        same_source = [other for other in others if other.get("source") == self.source]
        if not same_source:
            return self._error(f"the source of {self.name} changed since it was recorded")
        closest = min(same_source, key=lambda other: len(self._changed(other)))
        changed = self._changed(closest)
        if not changed:
            return self._error(f"{self.name} was called more often than it was recorded")
        return self._error(f"{self.name} was recorded with other arguments: {'; '.join(changed)}")

    def _changed(self, other: dict[str, Any]) -> list[str]:
        digests, shown = other.get("arguments", {}), other.get("arguments_shown", {})
        names = dict.fromkeys([*self.arguments, *digests])
        return [
            f"{name} was {shown.get(name, 'not there')}, is {self.shown.get(name, 'not there')}"
            for name in names
            if digests.get(name) != self.arguments.get(name)
        ]

    def _error(self, what: str) -> NemolabError:
        return NemolabError(
            f"cannot replay: {what}",
            where=f"{FOLDER}/{self.path.parent.name}/{self.path.name}",
            fix="run the notebook live to record it again, or restore the recording from git",
        )


def _announce(recorded_at: str) -> None:
    name = frontend.notebook_name()
    if name in _announced:
        return
    _announced.add(name)
    sentence = f"Replay: values recorded on {recorded_at[:10]}, nothing was measured."
    progress.say(sentence)
    if frontend.person_is_there():
        from nemolab.notebook import show

        show.note(sentence)


def _adapter(function: Callable[..., Any]) -> Any:
    from pydantic import PydanticSchemaGenerationError, TypeAdapter

    name = getattr(function, "__qualname__", repr(function))
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        raise NemolabError(f"{name} is no named function", where="replay.recorded", fix="record a function of the lib")
    hints = get_type_hints(function, include_extras=True)
    if "return" not in hints:
        raise NemolabError(f"{name} does not say what it returns", where="replay.recorded", fix="annotate it")
    try:
        return TypeAdapter(hints["return"])
    except PydanticSchemaGenerationError as error:
        raise NemolabError(
            f"what {name} returns cannot be stored: {error}",
            where="replay.recorded",
            fix="return dataclasses or models",
        ) from None


def _source_digest(function: Callable[..., Any]) -> str:
    """Digest of the function's syntax tree, without docstring, comments and layout: the same on every Python, because
    a report is recorded where the GPU is and checked elsewhere."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:
        raise NemolabError(
            f"the source of {function.__qualname__} is not there: {error}", where="replay.recorded"
        ) from None
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
        if getattr(node, "type_params", None) == []:  # a field that 3.12 brought
            del node.type_params  # type: ignore[attr-defined]
    fully: dict[str, bool] = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return hashlib.sha256(ast.dump(tree, **fully).encode()).hexdigest()


def _arguments(function: Callable[..., Any], args: Any, kwargs: Any, ignore: Sequence[str]) -> dict[str, Any]:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    found = {}
    for name, value in bound.arguments.items():
        if name in ignore:
            continue
        try:
            found[name] = to_jsonable_python(value, inf_nan_mode="constants")
        except PydanticSerializationError as error:
            raise NemolabError(
                f"the argument {name} of {function.__qualname__} cannot be part of a recording's key: {error}",
                where="replay.recorded",
                fix=f'pass ignore=("{name}",) if it does not belong to the question',
            ) from None
    return found


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _digest(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()


def _load(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}

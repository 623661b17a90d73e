"""The layers of a profile: the bases that a file extends, the file, a variant; and how they are put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemolab.core import located
from nemolab.core.errors import UsageError
from nemolab.core.located import Located, nearest
from nemolab.engines.profile_schema import Disagreement, File, Layer, parse

_WORDS = ("title", "model", "engine", "engine_version", "image", "revision", "goal", "fits", "notes")
_MAPS = ("args", "env", "files", "frontend", "ports", "secrets", "reasons")


def variants(found_layers: list[tuple[Located, File]]) -> tuple[str, ...]:
    """Names of the variants of all layers; `null` in one takes a variant of a base away."""
    found: dict[str, bool] = {}
    for source, layer in found_layers:
        for name, over in layer.variants.items():
            if over is None and name not in found:
                raise UsageError(f"no base has a variant {name!r}", where=source.at("variants", name))
            found[name] = over is not None
    return tuple(name for name, there in found.items() if there)


def layers(path: Path, seen: tuple[Path, ...] = ()) -> Iterator[tuple[Located, File]]:
    """The files from the lowest base to the profile itself."""
    source = located.read(path)
    file = parse(source)
    if file.extends:
        base = path.parent / f"{file.extends}.yaml"
        if base in (*seen, path):
            raise UsageError("extends itself", where=source.at("extends"))
        if not base.exists():
            known = [p.stem for p in path.parent.glob("_*.yaml")]
            raise UsageError(f"no base {file.extends!r}", where=source.at("extends"), fix=nearest(file.extends, known))
        yield from layers(base, (*seen, path))
    yield source, file


@dataclass(slots=True)
class Merged:
    """Layers put over each other, with the line of each part."""

    words: dict[str, Any] = field(default_factory=dict)
    hardware: dict[str, Any] = field(default_factory=dict)
    maps: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in _MAPS})
    disagreements: list[Disagreement] = field(default_factory=list)
    lines: dict[str, str] = field(default_factory=dict)

    def add(self, source: Located, at: tuple[str | int, ...], layer: Layer) -> None:
        """Put `layer`, which stands at `at` in `source`, over what is there.

        Raises:
            UsageError: it takes away what is not there.
        """
        for name in _WORDS:
            if (value := getattr(layer, name)) is not None:
                self.words[name] = value
                self.lines[name] = source.at(*at, name)
        self.hardware |= layer.hardware
        if layer.hardware:
            self.lines["hardware"] = source.at(*at, "hardware")
        for name in _MAPS:
            self._map(name, getattr(layer, name), source, (*at, name))
        self.disagreements += layer.disagreements

    def _map(self, name: str, layer: Mapping[str, Any], source: Located, at: tuple[str | int, ...]) -> None:
        for key, value in layer.items():
            if value is None:
                if key not in self.maps[name]:
                    raise UsageError(f"{key!r} is not set, so it cannot be taken away", where=source.at(*at, key))
                del self.maps[name][key]
                continue
            old = self.maps[name].get(key)
            deep = name == "files" and isinstance(old, dict)
            self.maps[name][key] = _deep(old, value) if deep and isinstance(old, dict) else value
            for path in [(key,), *((key, *leaf.split(".")) for leaf in leaves(value) if name == "files")]:
                self.lines[".".join((name, *path))] = source.at(*at, *path)


def _deep(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(old)
    for key, value in new.items():
        below = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(below, dict):
            result[key] = _deep(below, value)
        else:
            result[key] = value
    return result


def leaves(content: object, path: str = "") -> Iterator[str]:
    """Dotted keys of the innermost values of a mapping."""
    if isinstance(content, Mapping) and content:
        for key, value in content.items():
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif path:
        yield path

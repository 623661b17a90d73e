"""Charts of a report: what may be drawn offline, and the script that draws it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from nemolab.notebook.look import TRACES

_HEIGHT = 400
_LINK = re.compile(r"</?\s*a\b[^>]*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Chart:
    """A plotly figure made safe to draw in a file that is opened by others.

    Attributes:
        payload: `{"data": [...], "layout": {...}}` as JSON without "<", for a script element; "" if not drawable.
        title: of the figure, "" if it has none; it stands above the chart as text.
        alt: the text alternative that the figure carries, "" if it has none.
        height: in CSS pixels.
        problems: what was refused or taken out, one sentence each.
    """

    payload: str
    title: str
    alt: str
    height: int
    problems: tuple[str, ...] = ()


def chart(figure: dict[str, Any]) -> Chart:
    """The figure ready to draw. Unknown trace types are refused; references to the network and links are taken out."""
    problems: list[str] = []
    traces = [trace for trace in figure.get("data", []) if isinstance(trace, dict)]
    layout = figure.get("layout") if isinstance(figure.get("layout"), dict) else {}
    layout = dict(layout or {})
    foreign = sorted({str(trace.get("type", "scatter")) for trace in traces} - TRACES)
    if foreign:
        problems.append(f"trace type {', '.join(foreign)} cannot be drawn offline by this report")
    if figure.get("frames"):
        problems.append("its animation frames are left out")
    title = layout.pop("title", None)
    if isinstance(title, dict):
        title = title.get("text")
    height = layout.get("height") or _HEIGHT
    height = int(height) if isinstance(height, int | float) and 80 <= height <= 2000 else _HEIGHT
    meta = layout.pop("meta", None)
    alt = str(meta.get("alt") or "") if isinstance(meta, dict) else ""
    for key in ("width", "autosize"):
        layout.pop(key, None)  # the page decides
    layout["margin"] = {**(layout.get("margin") or {}), "t": 24}  # the title's room
    spec = _clean({"data": traces, "layout": {**layout, "height": height}}, problems)
    payload = "" if foreign else script_json(spec)
    return Chart(payload, _plain(str(title or "")), alt, height, tuple(problems))


def script_json(value: Any) -> str:
    """`value` as compact JSON that cannot end the script element it stands in."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def plotly_js() -> tuple[str, str, str]:
    """The bundle as base64 of its gzip, the CSP hash source of the script in it, and its version."""
    assets = files("nemolab.runbook") / "assets"
    note = json.loads((assets / "plotly-cartesian.json").read_text())
    packed = (assets / "plotly-cartesian.min.js.gz").read_bytes()
    digest = base64.b64encode(bytes.fromhex(note["sha256"])).decode()
    return base64.b64encode(packed).decode(), f"'sha256-{digest}'", str(note["version"])


def csp_hash(script: str) -> str:
    """The hash by which a content security policy allows one inline `script`."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _plain(text: str) -> str:
    return re.sub(r"<[^>]*>", " ", text).strip()


def _clean(value: Any, problems: list[str]) -> Any:
    if isinstance(value, str):
        return _LINK.sub("", value)
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no NaN; plotly.js draws a gap
    if isinstance(value, list):
        return [_clean(item, problems) for item in value]
    if isinstance(value, dict):
        out = {}
        for key, item in value.items():
            if key == "source" and not (isinstance(item, str) and item.startswith("data:image/")):
                problems.append("an image that is not in the file is left out")
                continue
            out[key] = _clean(item, problems)
        return out
    return value

"""What a summary must be, part by part, for a page to be drawn from it: a table of shapes, and what walks along it.

A shape is a `Leaf` (a plain value), a `Maybe` (that shape or None), `Many` (a list of one shape), a tuple (a list of
exactly these), a dictionary (a record with these keys) or `Named` (a record with any keys).
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from .jsonable import Summary
from .summarize import UNIT

LATER = {"name", "column"}  # keys that files of earlier releases do without


@dataclass(frozen=True)
class Leaf:
    """A plain value: what it is in words, and whether one is such."""

    what: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class Maybe:
    """A shape, or None."""

    of: Shape


@dataclass(frozen=True)
class Many:
    """A list, of this length where it is known."""

    of: Shape
    size: int | None = None


@dataclass(frozen=True)
class Named:
    """A record whose entries are all alike."""

    of: Shape


Shape: TypeAlias = "Leaf | Maybe | Many | Named | tuple[Shape, ...] | dict[str, Shape]"


def validate(summary: Summary) -> str | None:
    """What is wrong with a summary, in words; None if nothing is.

    Examples
    --------
    >>> validate({"n_rows": 3, "n_clusters": "two"})
    'n_clusters is not a whole number from 0'
    """
    return next(faults(summary, SIZES), None) or next(faults(summary, parts(summary)), None)


# ----------------------------------------------------------------------------------------------------------- the table


def number(low: float = -math.inf, high: float = math.inf) -> Leaf:
    """A finite number within bounds; a truth value is none."""
    what = "a number" if math.isinf(high) else f"a number from {low} to {high}"
    return Leaf(what, lambda value: type(value) in (int, float) and math.isfinite(value) and low <= value <= high)


def whole(low: int = 0, high: float = math.inf) -> Leaf:
    """A whole number within bounds."""
    what = f"a whole number from {low}" + ("" if math.isinf(high) else f" to {high}")
    return Leaf(what, lambda value: type(value) is int and low <= value <= high)


TEXT = Leaf("a text", lambda value: isinstance(value, str))
ANYTHING = Leaf("anything", lambda value: True)
CHANNELS = Leaf("1 or 3", lambda value: value in (1, 3))
COLUMN = Leaf("'term' or 'feature'", lambda value: value in ("term", "feature"))
WIDEST = 10_000  # pixels of an image's side

SIZES: Shape = {"n_rows": whole(1), "n_clusters": whole()}
MODEL: Shape = {"name": TEXT, "parameters": Named(ANYTHING), "facts": Named(ANYTHING), "versions": {"fiedler": TEXT}}


def parts(summary: Summary) -> Shape:
    """The shape of a summary of so many rows and clusters."""
    n, k = summary["n_rows"], summary["n_clusters"]
    return {
        "title": TEXT,
        "n_features": Maybe(whole()),
        "column": COLUMN,
        "n_unassigned": whole(0, n),
        "confidence": Maybe(number()),
        "in_doubt": Maybe(number()),
        "rows": _rows(n, k),
        "clusters": Many(_card(n, k), k),
        "plane": TEXT,
        **_contents(summary, n),
        **_comparison(summary, n),
        **_evidence(summary),
        "story": Maybe(TEXT),
        "model": MODEL,
        "seconds": Maybe(number()),
        "settings": Named(ANYTHING),
        "reproduce": TEXT,
    }


def _card(n: int, k: int) -> Shape:
    row, cluster = whole(0, n - 1), whole(0, k - 1)
    return {
        "label": cluster,
        "name": Maybe(TEXT),
        "size": whole(0, n),
        "share": number(),
        "confidence": Maybe(number()),
        "typical": Many(row),
        "doubtful": Many({"row": row, "confidence": number(), "other": cluster, "share": number()}),
        "terms": Many((TEXT, number())),
        "features": Many((TEXT, number(), number())),
    }


def _rows(n: int, k: int) -> Shape:
    return {
        "x": Many(whole(0, UNIT), n),
        "y": Many(whole(0, UNIT), n),
        "labels": Many(whole(-1, k - 1), n),
        "confidence": Maybe(Many(number(0, 1), n)),
        "ids": Maybe(Many(TEXT, n)),
    }


def _contents(summary: Summary, n: int) -> dict[str, Shape]:
    k, rows, n_texts = summary["n_clusters"], Many(whole(0, n - 1)), _size(summary, "texts", "rows", n)
    pixels = Leaf("as many pixels as there should be", lambda text: _holds(summary["thumbnails"], text))
    side = whole(1, WIDEST)
    images: dict[str, Shape] = {
        "height": side,
        "width": side,
        "channels": CHANNELS,
        "n_means": whole(k, k),
        "rows": rows,
    }
    return {
        "texts": Maybe({"rows": Maybe(rows), "values": Many(TEXT, n_texts), "length": whole()}),
        "thumbnails": Maybe({**images, "pixels": pixels}),
    }


def _comparison(summary: Summary, n: int) -> dict[str, Shape]:
    n_classes, n_columns = _size(summary, "truth", "classes"), _size(summary, "agreement", "clusters")
    agreement: Shape = {
        "scores": Named(number()),
        "clusters": Many(whole(-1, summary["n_clusters"] - 1)),
        "counts": Maybe(Many(Many(whole(), n_columns), n_classes)),
    }
    return {
        "truth": Maybe({"classes": Many(TEXT), "codes": Many(whole(0, n_classes - 1), n)}),
        "agreement": Maybe(agreement),
    }


def _evidence(summary: Summary) -> dict[str, Shape]:
    values = Maybe(Many(Maybe(number()), _size(summary, "evidence", "candidates")))
    known: dict[str, Shape] = {"n_clusters": whole(), "candidates": Many(whole())}
    found = {"gaps": values, "stability": values, "stability_error": values, "modularity": values}
    return {
        "spectrum": Maybe({"values": Many(number()), "gap": whole(1, _size(summary, "spectrum", "values"))}),
        "history": Maybe(Named(Many(Maybe(number())))),
        "evidence": Maybe({**known, **found}),
    }


def _size(summary: Summary, part: str, key: str, without: int = 0) -> int:
    """The length of a list that others must match, itself perhaps not there."""
    found = summary.get(part)
    values = found.get(key) if isinstance(found, dict) else None
    return len(values) if isinstance(values, list) else without


def _holds(pictures: Summary, text: Any) -> bool:
    """Whether a text unpacks to all pixels of the thumbnails, and no more of it than that is unpacked."""
    each = math.prod(pictures[key] for key in ("height", "width", "channels"))
    size = each * (pictures["n_means"] + len(pictures["rows"]))
    try:
        return len(zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)) == size
    except (TypeError, ValueError, zlib.error):
        return False


# ------------------------------------------------------------------------------------------------------------ the walk


def faults(value: Any, shape: Shape, where: str = "") -> Iterator[str]:
    """What is not as it should be, from first to last, each in words; the next is looked for when it is asked for."""
    match shape:
        case Leaf(what, fits):
            if not fits(value):
                yield f"{where} is not {what}"
        case Maybe(of):
            if value is not None:
                yield from faults(value, of, where)
        case Many(of, size):
            yield from _in_list(value, of, size, where)
        case tuple():
            yield from _in_tuple(value, shape, where)
        case Named(of):
            yield from _in_record(value, dict.fromkeys(value if isinstance(value, dict) else (), of), where)
        case dict():
            yield from _in_record(value, shape, where)


def _in_list(value: Any, of: Shape, size: int | None, where: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{where} is not a list"
    elif size is not None and len(value) != size:
        yield f"{where} has length {len(value)}, not {size}"
    elif isinstance(of, Leaf):  # an entry a row: there may be a million
        yield from (f"{where}[{place}] is not {of.what}" for place, one in enumerate(value) if not of.fits(one))
    else:
        for place, one in enumerate(value):
            yield from faults(one, of, f"{where}[{place}]")


def _in_tuple(value: Any, shapes: tuple[Shape, ...], where: str) -> Iterator[str]:
    wrong = list(_in_list(value, ANYTHING, len(shapes), where))
    yield from wrong
    for place, of in enumerate(() if wrong else shapes):
        yield from faults(value[place], of, f"{where}[{place}]")


def _in_record(value: Any, shapes: dict[str, Shape], where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} is not a record"
        return
    within = f"{where}." if where else ""
    if lacking := [within + key for key in shapes if key not in value and key not in LATER]:
        yield f"it lacks {', '.join(lacking)}"
        return
    for key, of in shapes.items():
        if key in value:
            yield from faults(value[key], of, within + key)

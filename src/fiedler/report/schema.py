"""The schema of a summary, and its validation.

A schema is a `Leaf` (a plain value), `Maybe` (another schema or None), `Many` (a list of one schema), a tuple (a list
with one schema per entry), a dictionary (an object with these keys) or `Named` (an object with any keys).
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from .cards import Summary
from .summary import MAX_COORDINATE, SUMMARY_VERSION

OPTIONAL_KEYS = {"name", "column", "caution", "profiles", "contested"}  # not present in files of earlier versions
MAX_IMAGE_SIDE = 10_000  # pixels


@dataclass(frozen=True)
class Leaf:
    """A plain value: its description and a test for it."""

    description: str
    is_valid: Callable[[Any], bool]


@dataclass(frozen=True)
class Maybe:
    """A value of another schema, or None."""

    schema: Schema


@dataclass(frozen=True)
class Many:
    """A list, of a given length if that is known."""

    schema: Schema
    length: int | None = None


@dataclass(frozen=True)
class Named:
    """An object with any keys, whose values have one schema."""

    schema: Schema


Schema: TypeAlias = "Leaf | Maybe | Many | Named | tuple[Schema, ...] | dict[str, Schema]"


def validate(summary: Summary) -> str | None:
    """Return a description of the first fault of a summary; None if it is valid.

    Examples
    --------
    >>> validate({"n_rows": 3, "n_clusters": "two"})
    'n_clusters is not an integer of at least 0'
    """
    return next(faults(summary, SIZE_FIELDS), None) or next(faults(summary, summary_schema(summary)), None)


def upgrade(summary: Summary) -> Summary:
    """Return a summary of an earlier version as one of this version.

    Version 1 lists columns as ``features``, which are triples of name, difference and mean.
    """
    version, clusters = summary.get("version"), summary.get("clusters")
    if type(version) is not int or version != 1 or not isinstance(clusters, list):
        return summary
    return {**summary, "version": SUMMARY_VERSION, "clusters": [_upgrade_cluster(one) for one in clusters]}


def _upgrade_cluster(cluster: Any) -> Any:
    features = cluster.get("features") if isinstance(cluster, dict) else None
    if not isinstance(features, list) or not all(isinstance(one, list) and len(one) == 3 for one in features):
        return cluster
    unknown = {"overall": None, "lift": None}
    contrasts = [{"column": name, "value": str(mean), "difference": value, **unknown} for name, value, mean in features]
    return {**{key: value for key, value in cluster.items() if key != "features"}, "contrasts": contrasts}


# ---------------------------------------------------------------------------------------------------------- the schema


def number(low: float = -math.inf, high: float = math.inf) -> Leaf:
    """Describe a finite number within bounds, not a boolean."""
    description = "a number" if math.isinf(high) else f"a number from {low} to {high}"
    return Leaf(
        description, lambda value: type(value) in (int, float) and math.isfinite(value) and low <= value <= high
    )


def integer(low: int = 0, high: float = math.inf) -> Leaf:
    """Describe an integer within bounds, not a boolean."""
    description = f"an integer of at least {low}" if math.isinf(high) else f"an integer from {low} to {high}"
    return Leaf(description, lambda value: type(value) is int and low <= value <= high)


TEXT = Leaf("a string", lambda value: isinstance(value, str))
BOOLEAN = Leaf("true or false", lambda value: isinstance(value, bool))
ANYTHING = Leaf("anything", lambda value: True)
CHANNELS = Leaf("1 or 3", lambda value: value in (1, 3))
COLUMN = Leaf("'term' or 'feature'", lambda value: value in ("term", "feature"))

SIZE_FIELDS: Schema = {"n_rows": integer(1), "n_clusters": integer()}
CONTRAST_FIELDS: Schema = {
    "column": TEXT,
    "value": TEXT,
    "overall": Maybe(TEXT),
    "difference": number(),
    "lift": Maybe(number()),
}
MODEL_FIELDS: Schema = {
    "name": TEXT,
    "parameters": Named(ANYTHING),
    "facts": Named(ANYTHING),
    "versions": {"fiedler": TEXT},
}


def summary_schema(summary: Summary) -> Schema:
    """Return the schema of a summary with as many rows and clusters as this one."""
    n, k = summary["n_rows"], summary["n_clusters"]
    return {
        "title": TEXT,
        "n_features": Maybe(integer()),
        "column": COLUMN,
        "n_unassigned": integer(0, n),
        "confidence": Maybe(number()),
        "uncertain_share": Maybe(number()),
        "rows": _rows_schema(n, k),
        "clusters": Many(_cluster_schema(n, k), k),
        "profiles": Many(_profile_schema(k)),
        "contested": Maybe(
            {"count": integer(0, n), "rows": Many({"row": integer(0, n - 1), "agreement": number(0, 1)})}
        ),
        "layout": TEXT,
        **_contents_schema(summary, n),
        **_agreement_schema(summary, n),
        **_evidence_schema(summary),
        "caution": Maybe(TEXT),
        "explanation": Maybe(TEXT),
        "model": MODEL_FIELDS,
        "seconds": Maybe(number()),
        "settings": Named(ANYTHING),
        "reproduce": TEXT,
    }


def _cluster_schema(n: int, k: int) -> Schema:
    row, cluster = integer(0, n - 1), integer(0, k - 1)
    return {
        "label": cluster,
        "name": Maybe(TEXT),
        "size": integer(0, n),
        "share": number(),
        "confidence": Maybe(number()),
        "typical": Many(row),
        "least_confident": Many({"row": row, "confidence": number(), "other": cluster, "share": number()}),
        "terms": Many((TEXT, number())),
        "contrasts": Many(CONTRAST_FIELDS),
    }


def _profile_schema(k: int) -> Schema:
    texts: dict[str, Schema] = {"column": TEXT, "level": Maybe(TEXT), "used": BOOLEAN, "overall": TEXT}
    return {**texts, "values": Many(TEXT, k), "differences": Many(number(), k)}


def _rows_schema(n: int, k: int) -> Schema:
    return {
        "x": Many(integer(0, MAX_COORDINATE), n),
        "y": Many(integer(0, MAX_COORDINATE), n),
        "labels": Many(integer(-1, k - 1), n),
        "confidence": Maybe(Many(number(0, 1), n)),
        "ids": Maybe(Many(TEXT, n)),
    }


def _contents_schema(summary: Summary, n: int) -> dict[str, Schema]:
    k, rows, n_texts = summary["n_clusters"], Many(integer(0, n - 1)), _length_of(summary, "texts", "rows", n)
    pixels = Leaf("the expected number of pixels", lambda text: _has_all_pixels(summary["thumbnails"], text))
    side = integer(1, MAX_IMAGE_SIDE)
    images: dict[str, Schema] = {
        "height": side,
        "width": side,
        "channels": CHANNELS,
        "n_means": integer(k, k),
        "rows": rows,
    }
    return {
        "texts": Maybe({"rows": Maybe(rows), "values": Many(TEXT, n_texts), "length": integer()}),
        "thumbnails": Maybe({**images, "pixels": pixels}),
    }


def _agreement_schema(summary: Summary, n: int) -> dict[str, Schema]:
    n_classes, n_columns = _length_of(summary, "truth", "classes"), _length_of(summary, "agreement", "clusters")
    agreement: Schema = {
        "scores": Named(number()),
        "clusters": Many(integer(-1, summary["n_clusters"] - 1)),
        "counts": Maybe(Many(Many(integer(), n_columns), n_classes)),
    }
    return {
        "truth": Maybe({"classes": Many(TEXT), "codes": Many(integer(0, n_classes - 1), n)}),
        "agreement": Maybe(agreement),
    }


def _evidence_schema(summary: Summary) -> dict[str, Schema]:
    values = Maybe(Many(Maybe(number()), _length_of(summary, "evidence", "candidates")))
    columns = {"gaps": values, "stability": values, "stability_error": values, "modularity": values}
    n_iterations = _length_of(summary, "history", "iterations")
    history: Schema = {
        "maximize": BOOLEAN,
        "iterations": Many(integer()),
        "values": Named(Many(Maybe(number()), n_iterations)),
    }
    return {
        "spectrum": Maybe({"values": Many(number()), "gap": integer(1, _length_of(summary, "spectrum", "values"))}),
        "history": Maybe(history),
        "evidence": Maybe({"n_clusters": integer(), "candidates": Many(integer()), **columns}),
    }


def _length_of(summary: Summary, part: str, key: str, default: int = 0) -> int:
    """Return the length of a list that other lists must match, or the default if it is missing."""
    section = summary.get(part)
    values = section.get(key) if isinstance(section, dict) else None
    return len(values) if isinstance(values, list) else default


def _has_all_pixels(thumbnails: Summary, text: Any) -> bool:
    """Whether a text decompresses to exactly the pixels of the thumbnails; no more than that is decompressed."""
    n_bytes = math.prod(thumbnails[key] for key in ("height", "width", "channels"))
    n_bytes *= thumbnails["n_means"] + len(thumbnails["rows"])
    try:
        decompressed = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), n_bytes + 1)
    except (TypeError, ValueError, zlib.error):
        return False
    return len(decompressed) == n_bytes


# ------------------------------------------------------------------------------------------------------ the validation


def faults(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """Yield descriptions of the faults of a value in order; each is searched for only when it is requested."""
    match schema:
        case Leaf(description, is_valid):
            if not is_valid(value):
                yield f"{path} is not {description}"
        case Maybe(inner):
            if value is not None:
                yield from faults(value, inner, path)
        case Many(inner, length):
            yield from _list_faults(value, inner, length, path)
        case tuple():
            yield from _tuple_faults(value, schema, path)
        case Named(inner):
            yield from _object_faults(value, dict.fromkeys(value if isinstance(value, dict) else (), inner), path)
        case dict():
            yield from _object_faults(value, schema, path)


def _list_faults(value: Any, schema: Schema, length: int | None, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path} is not a list"
    elif length is not None and len(value) != length:
        yield f"{path} has length {len(value)}, not {length}"
    elif isinstance(schema, Leaf):  # without a call per entry, as there may be a million rows
        for i, entry in enumerate(value):
            if not schema.is_valid(entry):
                yield f"{path}[{i}] is not {schema.description}"
    else:
        for i, entry in enumerate(value):
            yield from faults(entry, schema, f"{path}[{i}]")


def _tuple_faults(value: Any, schemas: tuple[Schema, ...], path: str) -> Iterator[str]:
    wrong_length = list(_list_faults(value, ANYTHING, len(schemas), path))
    yield from wrong_length
    for i, schema in enumerate(() if wrong_length else schemas):
        yield from faults(value[i], schema, f"{path}[{i}]")


def _object_faults(value: Any, schemas: dict[str, Schema], path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path} is not an object"
        return
    prefix = f"{path}." if path else ""
    if missing := [prefix + key for key in schemas if key not in value and key not in OPTIONAL_KEYS]:
        yield f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        return
    for key, schema in schemas.items():
        if key in value:
            yield from faults(value[key], schema, prefix + key)

"""The files of a summary: JSON, validated when it is read, and the page, one HTML file without external requests.

Data never becomes markup: it is embedded as JSON with every ``<`` escaped, the script writes it as text, and the
content security policy allows only the script whose hash it contains and no loading from other places.
Colours come from `fiedler.plots`, so that a cluster has the same colour on the page and in a figure.
Per-row numbers are stored as base64 of little-endian integers, thumbnails as one PNG.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
import struct
import zlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .._files import atomic_write, check_path
from ..errors import DataNotFoundError, FileFormatError, InputError
from ..manifold.report_text import UNCERTAIN_BELOW
from ..plots.style import CONFIDENCE_COLORS, MIN_OPACITY, PALETTE, PALETTE_ON_DARK, UNASSIGNED
from .cards import Summary
from .summary import MAX_COORDINATE, SUMMARY_FORMAT, SUMMARY_VERSION

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


MAX_IMAGE_SIDE = 10_000  # pixels of thumbnails in a file
SPRITE_COLUMNS = 64  # thumbnails side by side in the image of all thumbnails
COLORS = {
    "groups": PALETTE,
    "groups_on_dark": PALETTE_ON_DARK,
    "unassigned": UNASSIGNED,
    "confidence": CONFIDENCE_COLORS,
    "min_opacity": MIN_OPACITY,
}
PNG_COLOR_TYPES = {1: 0, 3: 2}  # by the number of channels

# The two forms that the modules of the script use: ``import { a, b } from "./name.js";``, and ``export`` before a
# ``const`` or a ``function``.
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function) (\w+))", re.MULTILINE)


def bundle_script() -> str:
    """Return one script with the module ``main`` and all modules it imports, each once and before its first use.

    A module becomes an immediately called function, so that its names stay private; it returns what it exports.
    """
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        text = read_template(f"script/{name}.js")
        for imported in IMPORT.finditer(text):
            if imported[2] not in modules:
                add(imported[2])
        modules[name] = wrap_module(name, text)

    add("main")
    return "\n".join(['"use strict";', *modules.values()])


def wrap_module(name: str, text: str) -> str:
    r"""Turn a module into a constant that contains its exports.

    Examples
    --------
    >>> print(wrap_module("two", 'import { one } from "./ones.js";\nexport const two = one + one;\n'))
    const $two = (() => {
    const { one } = $ones;
    const two = one + one;
    return { two };
    })();
    """
    body = EXPORT.sub("", IMPORT.sub(r"const {\1} = $\2;", text))
    return f"const ${name} = (() => {{\n{body}return {{ {', '.join(EXPORT.findall(text))} }};\n}})();"


def read_template(name: str) -> str:
    """Read a file under ``templates``."""
    return resources.files(__package__).joinpath("templates", *name.split("/")).read_text(encoding="utf-8")


def write_report(summary: Summary, path: str | os.PathLike[str]) -> Path:
    """Write the report of a summary to one HTML file, which needs no network and no other file; return its path.

    An existing file is replaced only when the new one is complete.

    Parameters
    ----------
    summary : dict
        The result of :func:`summarize` or :func:`read_summary`.
    path : path
        The file to write, usually with the extension ``.html``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.cluster import KMeans
    >>> from fiedler.report import summarize, write_report
    >>> X = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0]]
    >>> summary = summarize(KMeans(2, n_init=1, random_state=0).fit(X), X, title="Two pairs")
    >>> page = write_report(summary, pathlib.Path(tempfile.mkdtemp()) / "report.html")
    >>> "<title>Two pairs</title>" in page.read_text(encoding="utf-8")
    True
    """
    check_format(summary)
    return _write_text(render(summary), path)


def write_summary(summary: Summary, path: str | os.PathLike[str]) -> Path:
    """Write a summary as JSON, from which the report can be made again; return the path of the file.

    An existing file is replaced only when the new one is complete.

    Parameters
    ----------
    summary : dict
        The result of :func:`summarize`.
    path : path
        The file to write, usually with the extension ``.json``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.cluster import KMeans
    >>> from fiedler.report import read_summary, summarize, write_summary
    >>> X = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0]]
    >>> summary = summarize(KMeans(2, n_init=1, random_state=0).fit(X), X)
    >>> path = write_summary(summary, pathlib.Path(tempfile.mkdtemp()) / "summary.json")
    >>> read_summary(path) == summary
    True
    """
    check_format(summary)
    return _write_text(json.dumps(summary, allow_nan=False, ensure_ascii=False), path)


def _write_text(text: str, path: str | os.PathLike[str]) -> Path:
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def read_summary(path: str | os.PathLike[str]) -> Summary:
    """Read a summary written by :func:`write_summary`, as :func:`summarize` returned it.

    Raises
    ------
    DataNotFoundError
        If there is no such file.
    FileFormatError
        If the file is damaged, or was written by a later version of fiedler.

    Examples
    --------
    Make a report from the file alone:

    >>> import pathlib, tempfile
    >>> from sklearn.cluster import KMeans
    >>> from fiedler.report import read_summary, summarize, write_report, write_summary
    >>> X = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0]]
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> path = write_summary(summarize(KMeans(2, n_init=1, random_state=0).fit(X), X), folder / "summary.json")
    >>> summary = read_summary(path)
    >>> summary["n_rows"], sorted(cluster["size"] for cluster in summary["clusters"])
    (3, [1, 2])
    >>> write_report(summary, folder / "report.html").name
    'report.html'
    """
    check_path(path)
    file, reason = str(path), None
    try:
        summary = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataNotFoundError(f"there is no summary file {file!r}", code="file_not_found", file=file) from None
    except (IsADirectoryError, PermissionError):  # Windows denies the permission to open a folder
        if not Path(path).is_dir():
            raise
        reason = "it is a folder"
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested too deeply
        reason = str(error)
    if reason is not None:
        problem = f"{file!r} is not a valid summary file: {reason}"
        raise FileFormatError(problem, code="invalid_summary", file=file, reason=reason)
    check_format(summary, file)
    try:
        check_schema(summary, SIZES)
        check_schema(summary, summary_schema(summary, summary["n_rows"], summary["n_clusters"]))
    except _SchemaError as error:
        problem = f"{file!r} is damaged: {error}"
        hint = "create it again with fiedler cluster"
        raise FileFormatError(problem, hint, code="damaged_summary", reason=str(error), file=file) from None
    return summary


def check_format(summary: Any, file: str | None = None) -> None:
    """Raise an error for what is not a summary, or is one of another version; its content is not looked at."""
    name, fields = ("the summary", {}) if file is None else (repr(file), {"file": file})
    error = InputError if file is None else FileFormatError
    if not isinstance(summary, dict) or summary.get("format") != SUMMARY_FORMAT:
        hint = "create one with fiedler.report.summarize"
        raise error(f"{name} is not a summary of a clustering", hint, code="invalid_summary", **fields)
    version = summary.get("version")
    if type(version) is not int or version != SUMMARY_VERSION:
        problem = f"{name} has version {version!r}, but this version of fiedler reads version {SUMMARY_VERSION}"
        hint = "create it again, or update fiedler"
        raise error(problem, hint, code="summary_version", version=version, **fields)


def render(summary: Summary) -> str:
    """Return the page as text."""
    script = bundle_script()
    data = json.dumps(_page_data(summary), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    parts = {
        "title": html.escape(summary["title"]),
        "style": read_template("report.css"),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "data": data.replace("<", "\\u003c"),  # safe inside a script element
    }
    # in one pass, so that data which looks like a placeholder is not replaced
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read_template("report.html"))


def _page_data(summary: Summary) -> Summary:
    """Encode the summary for the script: per-row numbers as typed arrays, label k for unassigned rows."""
    rows, truth, thumbnails = summary["rows"], summary["truth"], summary["thumbnails"]
    labels, confidence = np.array(rows["labels"]), rows["confidence"]
    encoded_rows = {
        "x": encode_array(rows["x"], "uint16"),
        "y": encode_array(rows["y"], "uint16"),
        "labels": encode_array(np.where(labels < 0, summary["n_clusters"], labels), "uint16"),
        "confidence": None if confidence is None else encode_array(np.rint(np.array(confidence) * 255), "uint8"),
        "truth": None if truth is None else encode_array(truth["codes"], "uint16"),
        "ids": rows["ids"],
    }
    levels = summary["levels"]
    if levels is not None:
        groups, m = np.array(levels["groups"]), len(levels["clusters"])
        levels = {**levels, "groups": encode_array(np.where(groups < 0, m, groups), "uint16")}
    return {
        **summary,
        "rows": encoded_rows,
        "levels": levels,
        "truth": None if truth is None else truth["classes"],
        "thumbnails": None if thumbnails is None else _sprite(thumbnails),
        "max_coordinate": MAX_COORDINATE,
        "uncertain_below": UNCERTAIN_BELOW,
        "colours": COLORS,
    }


def encode_array(values: ArrayLike, dtype: Literal["uint8", "uint16"]) -> str:
    """Encode numbers as base64 of little-endian integers."""
    return base64.b64encode(np.asarray(values).astype(np.dtype(dtype).newbyteorder("<")).tobytes()).decode("ascii")


def _sprite(thumbnails: Summary) -> Summary:
    """Combine all thumbnails into one image with `SPRITE_COLUMNS` columns."""
    height, width, channels = (thumbnails[key] for key in ("height", "width", "channels"))
    pixels = np.frombuffer(zlib.decompress(base64.b64decode(thumbnails["pixels"])), dtype=np.uint8)
    pixels = pixels.reshape(-1, height, width, channels)
    columns = min(SPRITE_COLUMNS, len(pixels))
    lines = -(-len(pixels) // columns)
    sheet = np.zeros((lines * columns, height, width, channels), dtype=np.uint8)
    sheet[: len(pixels)] = pixels
    sheet = sheet.reshape(lines, columns, height, width, channels).swapaxes(1, 2)
    image = encode_png(sheet.reshape(lines * height, columns * width, channels))
    unchanged = {key: thumbnails[key] for key in ("height", "width", "n_means", "rows")}
    return {**unchanged, "columns": columns, "lines": lines, "png": base64.b64encode(image).decode("ascii")}


def encode_png(pixels: np.ndarray) -> bytes:
    """Encode uint8 pixels of shape (height, width, 1 or 3) as PNG: eight bits per channel, no filter [RFC 2083]."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, PNG_COLOR_TYPES[channels], 0, 0, 0)
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # every line begins with its filter type
    lines[:, 1:] = pixels.reshape(height, -1)
    body = zlib.compress(lines.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + _png_chunk(b"IHDR", header) + _png_chunk(b"IDAT", body) + _png_chunk(b"IEND", b"")


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# ------------------------------------------------------------------------------------------------ summaries from files
#
# A schema is a `Leaf`, `Maybe` (or None), `Many` (a list), a tuple (a list with one schema per entry) or a dictionary
# (an object with these keys, or with any keys, if its only key is `ANY`).


class _SchemaError(ValueError):
    """A value does not match its schema."""


class Leaf(NamedTuple):
    """A plain value: its description and a test for it."""

    description: str
    is_valid: Callable[[Any], bool]


class Maybe(NamedTuple):
    """A value of another schema, or None."""

    schema: Any


class Many(NamedTuple):
    """A list, of a given length if that is known."""

    schema: Any
    length: int | None = None


def number(low: float = -math.inf, high: float = math.inf) -> Leaf:
    """Describe a finite number within bounds, not a boolean."""
    name = "a number" if math.isinf(high) else f"a number from {low} to {high}"
    return Leaf(name, lambda value: type(value) in (int, float) and math.isfinite(value) and low <= value <= high)


def integer(low: int = 0, high: float = math.inf) -> Leaf:
    """Describe an integer within bounds, not a boolean."""
    description = f"an integer of at least {low}" if math.isinf(high) else f"an integer from {low} to {high}"
    return Leaf(description, lambda value: type(value) is int and low <= value <= high)


ANY = "any key"
TEXT = Leaf("a string", lambda value: isinstance(value, str))
BOOLEAN = Leaf("true or false", lambda value: isinstance(value, bool))
ANYTHING = {ANY: Leaf("anything", lambda value: True)}
SIZES = {"n_rows": integer(1), "n_clusters": integer()}


def summary_schema(summary: Summary, n: int, k: int) -> dict[str, Any]:
    """Return the schema of a summary of n rows and k clusters, whose lists have the lengths of those they belong to."""

    def length(part: str, key: str, default: int = 0) -> int:
        section = summary.get(part)
        values = section.get(key) if isinstance(section, dict) else None
        return len(values) if isinstance(values, list) else default

    row, cluster, share, value = integer(0, n - 1), integer(0, k - 1), number(0, 1), Maybe(number())
    n_classes, n_texts = length("truth", "classes"), length("texts", "rows", n)
    rows: dict[str, Any] = {
        **dict.fromkeys(("x", "y"), Many(integer(0, MAX_COORDINATE), n)),
        "labels": Many(integer(-1, k - 1), n),
        "confidence": Maybe(Many(share, n)),
        "ids": Maybe(Many(TEXT, n)),
    }
    borderline = {"row": row, "confidence": number(), "other": cluster, "share": number()}
    contrast = {"column": TEXT, "value": TEXT, "overall": Maybe(TEXT), "difference": number(), "lift": value}
    card = {
        "label": cluster,
        "name": Maybe(TEXT),
        "size": integer(0, n),
        "share": number(),
        "confidence": value,
        "typical": Many(row),
        "least_confident": Many(borderline),
        "terms": Many((TEXT, number())),
        "contrasts": Many(contrast),
        "shape": Maybe(Many(number())),
    }
    profile: dict[str, Any] = {"column": TEXT, "level": Maybe(TEXT), "used": BOOLEAN, "overall": TEXT}
    profile |= {"values": Many(TEXT, k), "differences": Many(number(), k)}
    cells = {"column": TEXT, "kind": TEXT, "unit": TEXT, "levels": Maybe(Many(TEXT)), "values": Many(value, n)}
    thumbnails: dict[str, Any] = {
        **dict.fromkeys(("height", "width"), integer(1, MAX_IMAGE_SIDE)),
        "channels": Leaf("1 or 3", lambda value: value in (1, 3)),
        "n_means": integer(k, k),
        "rows": Many(row),
        "pixels": Leaf("the expected number of pixels", lambda text: _has_all_pixels(summary, text)),
    }
    objective = {ANY: Many(value, length("history", "iterations"))}
    by_candidate = Maybe(Many(value, length("evidence", "candidates")))
    evidence: dict[str, Any] = {"n_clusters": integer(), "candidates": Many(integer())}
    evidence |= dict.fromkeys(("stability", "stability_error", "modularity", "valley", "score"), by_candidate)
    m = length("levels", "clusters")
    split = Maybe((integer(0, m), integer(0, m), integer(0, m)))
    levels = {"groups": Many(integer(-1, m - 1), n), "clusters": Many(Many(integer(0, m - 1), m))}
    levels |= {"p_values": Many(Maybe(share), m), "splits": Many(split, m)}
    counts = Many(Many(integer(), length("agreement", "clusters")), n_classes)
    return {
        **dict.fromkeys(("title", "layout", "reproduce"), TEXT),
        **dict.fromkeys(("caution", "explanation"), Maybe(TEXT)),
        **dict.fromkeys(("confidence", "uncertain_share", "seconds"), value),
        "n_features": Maybe(integer()),
        "n_unassigned": integer(0, n),
        "column": Leaf("'term', 'feature' or 'column'", lambda value: value in ("term", "feature", "column")),
        "columns": Maybe(Many({"name": TEXT, "use": TEXT, "why": TEXT})),
        "rows": rows,
        "cells": Maybe(Many(cells)),
        "clusters": Many(card, k),
        "profiles": Many(profile),
        "contested": Maybe({"count": integer(0, n), "rows": Many({"row": row, "agreement": share})}),
        "texts": Maybe({"rows": Maybe(Many(row)), "values": Many(TEXT, n_texts), "length": integer()}),
        "thumbnails": Maybe(thumbnails),
        "truth": Maybe({"classes": Many(TEXT), "codes": Many(integer(0, n_classes - 1), n)}),
        "agreement": Maybe({"scores": {ANY: number()}, "clusters": Many(integer(-1, k - 1)), "counts": Maybe(counts)}),
        "spectrum": Maybe({"values": Many(number()), "gap": integer(1, length("spectrum", "values"))}),
        "history": Maybe({"maximize": BOOLEAN, "iterations": Many(integer()), "values": objective}),
        "evidence": Maybe(evidence),
        "levels": Maybe(levels),
        "model": {"name": TEXT, "parameters": ANYTHING, "facts": ANYTHING, "versions": {"fiedler": TEXT}},
        "settings": ANYTHING,
    }


def _has_all_pixels(summary: Summary, text: Any) -> bool:
    """Whether a text decompresses to exactly the pixels of the thumbnails; no more than that is decompressed."""
    thumbnails = summary["thumbnails"]
    n_bytes = math.prod(thumbnails[key] for key in ("height", "width", "channels"))
    n_bytes *= thumbnails["n_means"] + len(thumbnails["rows"])
    try:
        decompressed = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), n_bytes + 1)
    except (TypeError, ValueError, zlib.error):
        return False
    return len(decompressed) == n_bytes


def check_schema(value: Any, schema: Any, path: str = "") -> None:
    """Raise an error that names the first part of a value that does not match a schema."""
    match schema:
        case Leaf(description, is_valid):
            if not is_valid(value):
                raise _SchemaError(f"{path} is not {description}")
        case Maybe(inner):
            if value is not None:
                check_schema(value, inner, path)
        case Many(inner, length):
            _check_list(value, length, path)
            if isinstance(inner, Leaf) and all(map(inner.is_valid, value)):  # quickly, as there may be a million rows
                return
            for i, entry in enumerate(value):
                check_schema(entry, inner, f"{path}[{i}]")
        case tuple():
            _check_list(value, len(schema), path)
            for i, entry in enumerate(value):
                check_schema(entry, schema[i], f"{path}[{i}]")
        case dict():
            if not isinstance(value, dict):
                raise _SchemaError(f"{path} is not an object")
            prefix = f"{path}." if path else ""
            schemas = dict.fromkeys(value, schema[ANY]) if ANY in schema else schema
            if missing := [prefix + key for key in schemas if key not in value]:
                raise _SchemaError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
            for key, inner in schemas.items():
                check_schema(value[key], inner, prefix + key)


def _check_list(value: Any, length: int | None, path: str) -> None:
    if not isinstance(value, list):
        raise _SchemaError(f"{path} is not a list")
    if length is not None and len(value) != length:
        raise _SchemaError(f"{path} has length {len(value)}, not {length}")

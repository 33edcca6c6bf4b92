"""The page: one HTML file made from a summary alone, with style, script, data and images inside and no way out.

Whatever comes from data is never markup: it travels as JSON with every ``<`` escaped, the script writes it as text, and
the content security policy lets no script run but the one whose hash it names, nor anything be loaded from elsewhere.
Colours come from `fiedler.plots`, so that a cluster looks the same on the page and in a figure.
Numbers of rows travel as base64 of little-endian integers, thumbnails as one PNG.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .._files import atomic_write
from ..plots.style import FAINTEST, PALETTE, SURENESS, UNASSIGNED
from .jsonable import Summary
from .schema import validate
from .script import bundled, template
from .summarize import FORMAT, UNIT, VERSION

SPRITE_COLUMNS = 64
LOOK = {"groups": PALETTE, "none": UNASSIGNED, "sureness": SURENESS, "faintest": FAINTEST}
PNG_COLOURS = {1: 0, 3: 2}  # channels to PNG's colour types


def write_report(summary: Summary, path: str | os.PathLike[str]) -> Path:
    """Write the page of a summary to one file, whole or not at all; it needs no network and no other file.

    Parameters
    ----------
    summary : dict
        Of :func:`summarize`, or read by :func:`read_summary`.
    path : path
        Where to; ``.html`` by custom.

    Returns
    -------
    Path

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
    page = render(_checked(summary, "the summary"))
    with atomic_write(path) as draft:
        draft.write_text(page, encoding="utf-8", newline="\n")
    return Path(path)


def write_summary(summary: Summary, path: str | os.PathLike[str]) -> Path:
    """Write a summary as JSON, whole or not at all, so that its page can be made again.

    Parameters
    ----------
    summary : dict
        Of :func:`summarize`.
    path : path
        Where to; ``.json`` by custom.

    Returns
    -------
    Path

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
    text = json.dumps(_checked(summary, "the summary"), allow_nan=False, ensure_ascii=False)
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def read_summary(path: str | os.PathLike[str]) -> Summary:
    """The summary that :func:`write_summary` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict
        As :func:`summarize` made it.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it is damaged, or a later version of fiedler wrote it.

    Examples
    --------
    A page is made again from the file alone:

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
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no summary file {str(path)!r}") from None
    except ValueError as error:  # no JSON, or no text at all
        raise ValueError(f"{str(path)!r} is not a summary, or it is damaged: {error}") from error
    return _checked(found, repr(str(path)))


def _checked(summary: Any, name: str) -> Summary:
    if not isinstance(summary, dict) or summary.get("format") != FORMAT:
        raise ValueError(f"{name} is no summary of a clustering; make one with fiedler.report.summarize")
    if not isinstance(summary.get("version"), int) or summary["version"] > VERSION:
        raise ValueError(
            f"{name} has version {summary.get('version')!r}, but this fiedler reads up to {VERSION}; update fiedler"
        )
    if fault := validate(summary):
        raise ValueError(f"{name} is damaged: {fault}; make it again with fiedler cluster")
    return summary


# ----------------------------------------------------------------------------------------------------------- the page


def render(summary: Summary) -> str:
    """The page as text."""
    script = bundled()
    parts = {
        "title": html.escape(summary["title"]),
        "style": template("report.css"),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "data": as_json(_packed(summary)),
    }
    # in one go: a text that reads like a placeholder is left as it is
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template("report.html"))


def as_json(data: Any) -> str:
    """JSON that can stand inside a script element, whatever it holds: ``<`` is escaped."""
    return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _packed(summary: Summary) -> Summary:
    """The summary as the script wants it: numbers of rows as typed arrays, no cluster being one past the last."""
    rows, truth, pictures = summary["rows"], summary["truth"], summary["thumbnails"]
    confidence = rows["confidence"]
    packed = {
        "x": packed_array(rows["x"], "uint16"),
        "y": packed_array(rows["y"], "uint16"),
        "labels": packed_array(np.where(np.array(rows["labels"]) < 0, summary["n_clusters"], rows["labels"]), "uint16"),
        "confidence": None if confidence is None else packed_array(np.rint(np.array(confidence) * 255), "uint8"),
        "truth": None if truth is None else packed_array(truth["codes"], "uint16"),
        "ids": rows["ids"],
    }
    changed = {
        "rows": packed,
        "truth": None if truth is None else truth["classes"],
        "thumbnails": None if pictures is None else _sprite(pictures),
    }
    return {**summary, **changed, "unit": UNIT, "palette": LOOK}


def packed_array(values: Any, dtype: str) -> str:
    """Numbers as base64 of little-endian integers.

    Examples
    --------
    >>> packed_array([1, 256], "uint16")
    'AQAAAQ=='
    """
    return base64.b64encode(np.asarray(values).astype(np.dtype(dtype).newbyteorder("<")).tobytes()).decode("ascii")


# --------------------------------------------------------------------------------------------------------- thumbnails


def _sprite(pictures: Summary) -> Summary:
    """All thumbnails in one image, `SPRITE_COLUMNS` side by side, and the rows they belong to."""
    height, width, channels = (pictures[key] for key in ("height", "width", "channels"))
    pixels = np.frombuffer(zlib.decompress(base64.b64decode(pictures["pixels"])), dtype=np.uint8)
    pixels = pixels.reshape(-1, height, width, channels)
    columns = min(SPRITE_COLUMNS, len(pixels))
    lines = -(-len(pixels) // columns)
    sheet = np.zeros((lines * columns, height, width, channels), dtype=np.uint8)
    sheet[: len(pixels)] = pixels
    sheet = sheet.reshape(lines, columns, height, width, channels).swapaxes(1, 2)
    image = png(sheet.reshape(lines * height, columns * width, channels))
    kept = {key: pictures[key] for key in ("height", "width", "n_means", "rows")}
    return {**kept, "columns": columns, "lines": lines, "png": base64.b64encode(image).decode("ascii")}


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of uint8 pixels of shape (height, width, 1 or 3): eight bits a channel, no filter [RFC 2083]."""
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, PNG_COLOURS[channels], 0, 0, 0)
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # a line begins with the number of its filter
    lines[:, 1:] = pixels.reshape(height, -1)
    body = zlib.compress(lines.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

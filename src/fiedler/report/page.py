"""The page: one HTML file made from a summary, with style, script, data and images inside and no external requests.

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
import os
import re
import struct
import zlib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._files import atomic_write
from ..manifold.report_text import UNCERTAIN_BELOW
from ..plots.style import CONFIDENCE_COLORS, MIN_OPACITY, PALETTE, UNASSIGNED, on_dark
from .cards import Summary
from .summary import MAX_COORDINATE, check_format

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


SPRITE_COLUMNS = 64  # thumbnails side by side in the image of all thumbnails
COLORS = {
    "groups": PALETTE,
    "groups_on_dark": [on_dark(color) for color in PALETTE],
    "unassigned": UNASSIGNED,
    "confidence": CONFIDENCE_COLORS,
    "min_opacity": MIN_OPACITY,
}
PNG_COLOR_TYPES = {1: 0, 3: 2}  # by the number of channels

# The two forms that the modules of the script use: ``import { a, b } from "./name.js";``, and ``export`` before a
# ``const`` or a ``function``.
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function) (\w+))", re.MULTILINE)


def bundle_script(entry: str = "main") -> str:
    """Return one script with the module ``entry`` and all modules it imports, each once and before its first use.

    A module becomes an immediately called function, so that its names stay private; it returns what it exports.
    """
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        text = read_template(f"script/{name}.js")
        for imported in IMPORT.finditer(text):
            if imported[2] not in modules:
                add(imported[2])
        modules[name] = wrap_module(name, text)

    add(entry)
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
    """Write the report of a summary to one HTML file, which needs no network and no other file.

    An existing file is replaced only when the new one is complete.

    Parameters
    ----------
    summary : dict
        The result of :func:`summarize` or :func:`read_summary`.
    path : path
        The file to write, usually with the extension ``.html``.

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
    check_format(summary)
    page = render(summary)
    with atomic_write(path) as draft:
        draft.write_text(page, encoding="utf-8", newline="\n")
    return Path(path)


def render(summary: Summary) -> str:
    """Return the page as text."""
    script = bundle_script()
    parts = {
        "title": html.escape(summary["title"]),
        "style": read_template("report.css"),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "data": script_json(_page_data(summary)),
    }
    # in one pass, so that data which looks like a placeholder is not replaced
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read_template("report.html"))


def script_json(data: object) -> str:
    """Encode data as JSON that is safe inside a script element: ``<`` is escaped."""
    return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


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
    return {
        **summary,
        "rows": encoded_rows,
        "truth": None if truth is None else truth["classes"],
        "thumbnails": None if thumbnails is None else _sprite(thumbnails),
        "max_coordinate": MAX_COORDINATE,
        "uncertain_below": UNCERTAIN_BELOW,
        "colours": COLORS,
    }


def encode_array(values: ArrayLike, dtype: Literal["uint8", "uint16"]) -> str:
    """Encode numbers as base64 of little-endian integers.

    Examples
    --------
    >>> encode_array([1, 256], "uint16")
    'AQAAAQ=='
    """
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

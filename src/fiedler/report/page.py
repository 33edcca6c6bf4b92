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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._files import atomic_write, check_path
from ..errors import DataNotFoundError, FileFormatError, InputError
from ..manifold.report_text import UNCERTAIN_BELOW
from ..plots.style import CONFIDENCE_COLORS, MIN_OPACITY, PALETTE, UNASSIGNED, on_dark
from .cards import Summary
from .schema import upgrade, validate
from .summary import MAX_COORDINATE, SUMMARY_FORMAT, SUMMARY_VERSION

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


# ---------------------------------------------------------------------------------------------------------------------
# The script of the page: the modules under ``templates/script`` bundled into one script without imports.
#
# A module becomes an immediately called function, so that its names stay private; it returns what the module exports.
# The bundler supports the two forms that the modules use: ``import { a, b } from "./name.js";`` and ``export`` before a
# ``const`` or a ``function``.

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function) (\w+))", re.MULTILINE)


def bundle_script(entry: str = "main") -> str:
    """Return one script with the module ``entry`` and all modules it imports, each once and before its first use."""
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


# ---------------------------------------------------------------------------------------------------------------------

SPRITE_COLUMNS = 64  # thumbnails side by side in the image of all thumbnails
COLORS = {
    "groups": PALETTE,
    "groups_on_dark": [on_dark(color) for color in PALETTE],
    "unassigned": UNASSIGNED,
    "confidence": CONFIDENCE_COLORS,
    "min_opacity": MIN_OPACITY,
}
PNG_COLOR_TYPES = {1: 0, 3: 2}  # by the number of channels


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
    page = render(_check_summary(summary))
    with atomic_write(path) as draft:
        draft.write_text(page, encoding="utf-8", newline="\n")
    return Path(path)


def write_summary(summary: Summary, path: str | os.PathLike[str]) -> Path:
    """Write a summary as JSON, from which the report can be made again.

    An existing file is replaced only when the new one is complete.

    Parameters
    ----------
    summary : dict
        The result of :func:`summarize`.
    path : path
        The file to write, usually with the extension ``.json``.

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
    text = json.dumps(_check_summary(summary), allow_nan=False, ensure_ascii=False)
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def read_summary(path: str | os.PathLike[str]) -> Summary:
    """Read a summary written by :func:`write_summary`.

    Parameters
    ----------
    path : path
        The file to read.

    Returns
    -------
    dict
        The summary, as :func:`summarize` returned it.

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
    try:
        summary = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataNotFoundError(
            f"there is no summary file {str(path)!r}", code="file_not_found", file=str(path)
        ) from None
    except (IsADirectoryError, PermissionError) as error:  # Windows denies the permission to open a folder
        if not Path(path).is_dir():
            raise
        reason = "it is a folder"
        raise FileFormatError(
            f"{str(path)!r} is not a valid summary file: {reason}",
            code="invalid_summary",
            file=str(path),
            reason=reason,
        ) from error
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested too deeply
        raise FileFormatError(
            f"{str(path)!r} is not a valid summary file: {error}",
            code="invalid_summary",
            file=str(path),
            reason=str(error),
        ) from error
    return _check_summary(summary, str(path))


def _check_summary(summary: Any, file: str | None = None) -> Summary:
    """Return a valid summary, or raise an error that names the file it was read from."""
    name, fields = ("the summary", {}) if file is None else (repr(file), {"file": file})
    error = InputError if file is None else FileFormatError
    if not isinstance(summary, dict) or summary.get("format") != SUMMARY_FORMAT:
        raise error(
            f"{name} is not a summary of a clustering",
            "create one with fiedler.report.summarize",
            code="invalid_summary",
            **fields,
        )
    summary = upgrade(summary)
    version = summary.get("version")
    if type(version) is not int or not 1 <= version <= SUMMARY_VERSION:
        raise error(
            f"{name} has version {version!r}, but this version of fiedler reads versions 1 to {SUMMARY_VERSION}",
            "update fiedler",
            code="summary_version",
            version=version,
            **fields,
        )
    if fault := validate(summary):
        raise error(
            f"{name} is damaged: {fault}",
            "create it again with fiedler cluster",
            code="damaged_summary",
            reason=fault,
            **fields,
        )
    return summary


# ----------------------------------------------------------------------------------------------------------- the page


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


# --------------------------------------------------------------------------------------------------------- thumbnails


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

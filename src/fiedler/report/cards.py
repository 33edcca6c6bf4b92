"""What a summary contains of each cluster: size, typical and least confident rows, and what sets it apart.

Values and texts are converted to what JSON can represent; of texts and images there is as much as a page has room for.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.arrays import to_numpy
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..manifold.explain import borderline_rows, typical_rows
from ..table.profiles import Profiles, Terms, format_value, matrix_terms, profile_rows, text_terms

if TYPE_CHECKING:
    from .._typing import Array

Summary = dict[str, Any]

MAX_TEXT_LENGTH = 240  # characters
TEXT_BUDGET = 4_000_000  # characters of all texts together
MIN_TEXT_LENGTH = 40  # characters; if the budget allows less, only texts on cards are included
THUMBNAIL_BUDGET = 4_000_000  # bytes of all pixels
MAX_THUMBNAILS = 5000
MAX_THUMBNAIL_SIDE = 40  # pixels
MAX_PROFILES = 200  # entries of the table of columns by cluster: those that differ most
CELL_BUDGET = 600_000  # cells of all rows that the map shows
MAX_CELL_COLUMNS = 12  # of a row: those that differ most
MIN_SHAPE, MAX_SHAPE = 8, 120  # columns without names that are drawn as a line


class CardRows(NamedTuple):
    """The number of rows listed on the card of a cluster."""

    typical: int
    least_confident: int


# --------------------------------------------------------------------------------------------------- values and texts


def jsonable(value: object) -> Any:
    """Convert a value to what JSON can represent: non-finite numbers become None, other objects their ``repr``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean_text(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    return shorten(clean_text(value if isinstance(value, str) else repr(value)), MAX_TEXT_LENGTH)


def clean_text(text: object, *, keep_lines: bool = False) -> str:
    """Return text that UTF-8 can encode, without lone surrogates and, unless ``keep_lines``, on one line."""
    encodable = str(text).encode("utf-8", "replace").decode("utf-8")
    return encodable if keep_lines else " ".join(encodable.split())


def shorten(text: str, length: int) -> str:
    """Cut a text to at most ``length`` characters, behind a word if there is one in the second half.

    Examples
    --------
    >>> shorten("high monthly amount", 15), shorten("2fd4e1c67a2d28fc", 8)
    ('high monthly…', '2fd4e1c…')
    """
    if len(text) <= length:
        return text
    start = text[:length].rfind(" ")
    return text[: start if start >= length // 2 else length - 1].rstrip(" ,;") + "…"


def count_noun(number: int, noun: str) -> str:
    """Write a number with its noun in the singular or plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def round_float(value: Any, digits: int = 4) -> float:
    """Round a number of any type to a Python float."""
    return round(float(value), digits)


# --------------------------------------------------------------------------------------------------- texts and images


def snippets(texts: Sequence[str], card_rows: list[int]) -> Summary:
    """Return the beginnings of texts within `TEXT_BUDGET`: of all rows, or of those on cards (then listed in ``rows``).

    The more texts, the shorter they are; those on cards have the full length.
    """
    length = min(MAX_TEXT_LENGTH, TEXT_BUDGET // len(texts))
    if length < MIN_TEXT_LENGTH:
        values = [shorten(clean_text(texts[row]), MAX_TEXT_LENGTH) for row in card_rows]
        return {"rows": card_rows, "values": values, "length": MAX_TEXT_LENGTH}
    on_cards = set(card_rows)
    values = [
        shorten(clean_text(str(text)[: 2 * MAX_TEXT_LENGTH]), MAX_TEXT_LENGTH if row in on_cards else length)
        for row, text in enumerate(texts)
    ]
    return {"rows": None, "values": values, "length": length}


def shrink_images(images: Array, n: int) -> np.ndarray:
    """Convert images to bytes, shape (n, h, w, 1 or 3), reduced by an integer factor to `MAX_THUMBNAIL_SIDE` pixels."""
    pixels = to_numpy(images)
    if pixels.ndim not in (3, 4) or len(pixels) != n or pixels.shape[3:] not in ((), (1,), (3,)):
        problem = f"images must have shape ({n}, height, width) or ({n}, height, width, 3); got {pixels.shape}"
        raise InputError(problem, code="wrong_shape", parameter="images", shape=pixels.shape)
    is_bytes = pixels.dtype == np.uint8
    pixels = _block_means(pixels if pixels.ndim == 4 else pixels[..., None])
    low, high = (0.0, 255.0) if is_bytes else (float(pixels.min()), float(pixels.max()))
    return np.rint((pixels - low) * (255 / ((high - low) or 1.0))).astype(np.uint8)


def _block_means(pixels: np.ndarray) -> np.ndarray:
    """Average square blocks of pixels; an incomplete block at the edge is cut off."""
    n, height, width, channels = pixels.shape
    factor = -(-max(height, width) // MAX_THUMBNAIL_SIDE)
    block_height, block_width = min(factor, height), min(factor, width)
    h, w = height // block_height, width // block_width
    cropped = pixels[:, : h * block_height, : w * block_width]
    return cropped.reshape(n, h, block_height, w, block_width, channels).mean(axis=(2, 4), dtype=np.float32)


def pack_thumbnails(
    pixels: np.ndarray, labels: np.ndarray, n_clusters: int, card_rows: list[int], rng: np.random.RandomState
) -> Summary:
    """Pack the mean image of every cluster, the images on cards, and a random sample of others if there is room."""
    n, height, width, channels = pixels.shape
    room = min(MAX_THUMBNAILS, THUMBNAIL_BUDGET // (height * width * channels)) - len(card_rows)
    others = rng.permutation(np.setdiff1d(np.arange(n), card_rows))[: max(room, 0)]
    rows = np.sort(np.concatenate([np.array(card_rows, dtype=np.int64), others]))
    means = [
        pixels[labels == label].mean(axis=0) if (labels == label).any() else np.zeros(pixels.shape[1:])
        for label in range(n_clusters)
    ]
    mean_pixels = np.rint(means).astype(np.uint8).reshape(n_clusters, height, width, channels)
    return {
        "height": height,
        "width": width,
        "channels": channels,
        "n_means": n_clusters,
        "rows": rows.tolist(),
        "pixels": base64.b64encode(zlib.compress(np.concatenate([mean_pixels, pixels[rows]]).tobytes(), 6)).decode(),
    }


# --------------------------------------------------------------------------------------------------------------- cards


def cluster_sizes(labels: np.ndarray, memberships: np.ndarray | None, n_clusters: int) -> list[Summary]:
    """Return the number of rows of every cluster, its share of all rows, and its mean confidence.

    The confidence of a row is its largest membership; rows of label -1 are in no cluster.
    """
    confidence = None if memberships is None else memberships.max(axis=1)
    clusters = []
    for label in range(n_clusters):
        members = labels == label
        size = int(members.sum())
        mean = None if confidence is None or size == 0 else round_float(confidence[members].mean())
        clusters.append({"label": label, "size": size, "share": round_float(size / len(labels)), "confidence": mean})
    return clusters


def cluster_cards(
    X: Array | AffinityGraph, labels: np.ndarray, memberships: np.ndarray | None, n_clusters: int, n_rows: CardRows
) -> list[Summary]:
    """Return size, confidence, typical and least confident rows of every cluster."""
    clusters = cluster_sizes(labels, memberships, n_clusters)
    for cluster in clusters:
        members = np.flatnonzero(labels == cluster["label"])
        Q = None if memberships is None else memberships[members]
        cluster["typical"] = typical_rows(X, members, Q)[: n_rows.typical].tolist()
        borderline = borderline_rows(members, Q, cluster["label"], n_rows.least_confident)
        cluster["least_confident"] = [
            {**one._asdict(), "confidence": round_float(one.confidence), "share": round_float(one.share)}
            for one in borderline
        ]
    return clusters


def describe_cards(clusters: list[Summary], profiles: Profiles | None, names: Sequence[str | None]) -> None:
    """Add to every cluster its name, terms, and the columns in which it differs most."""
    for cluster, name in zip(clusters, names, strict=True):
        label = cluster["label"]
        described = profiles if cluster["size"] else None
        contrasts = [] if described is None else described.contrasts(label)
        terms = [] if described is None else described.leading_terms(label)
        cluster["name"] = None if name is None else shorten(clean_text(name), MAX_TEXT_LENGTH) or None
        cluster["terms"] = [[clean_text(term), round_float(score)] for term, score in terms]
        cluster["contrasts"] = [
            {
                "column": clean_text(one.title),
                "value": format_value(one.value, one.kind, one.unit),
                "overall": format_value(one.overall, one.kind, one.unit),
                "difference": round_float(one.difference),
                "lift": None if one.lift is None else round_float(one.lift),
            }
            for one in contrasts
        ]


def name_clusters(
    given: Sequence[object] | None, profiles: Profiles | None, clusters: list[Summary]
) -> list[str | None]:
    """Return the name of every cluster: the given one, or that of its columns or terms; None if it has neither."""
    described = [None] * len(clusters) if profiles is None else profiles.names()
    names = []
    for label, cluster in enumerate(clusters):
        name = None if given is None else given[label]
        name = described[label] if name is None and cluster["size"] else name
        names.append(None if name is None else str(name))
    return names


def draw_shapes(clusters: list[Summary], profiles: Profiles | None) -> None:
    """Add to every cluster the line of its means, in standard deviations from those of all rows; of many, mean ones."""
    n_columns = 0 if profiles is None else len(profiles.columns)
    for cluster in clusters:
        shape = None
        if profiles is not None and n_columns >= MIN_SHAPE and cluster["size"]:
            parts = np.array_split(profiles.differences[cluster["label"]], min(n_columns, MAX_SHAPE))
            shape = [round_float(part.mean(), 2) for part in parts]
        cluster["shape"] = shape


def row_cells(profiles: Profiles | None, n_rows: int) -> list[Summary] | None:
    """Return the cells of all rows in the columns that differ most between clusters, as many as a page has room for.

    Numbers are rounded to four digits, dates are days since 1970, and words are numbers of their level; a word that is
    too rare for a level is -1.
    """
    if profiles is None or profiles.entries is None or len(profiles.entries) != n_rows or len(profiles.means) < 2:
        return None
    largest: dict[str, float] = {}
    for column, kind, size in zip(profiles.columns, profiles.kinds, np.abs(profiles.differences).max(axis=0)):
        if kind != "text":
            largest[column] = max(largest.get(column, 0.0), float(size))
    n_columns = min(MAX_CELL_COLUMNS, CELL_BUDGET // n_rows)
    chosen = sorted(largest, key=lambda column: -largest[column])[:n_columns]
    return [_column_cells(profiles, column) for column in largest if column in chosen] or None


def _column_cells(profiles: Profiles, column: str) -> Summary:
    assert profiles.entries is not None
    places = [i for i, name in enumerate(profiles.columns) if name == column]
    kind, levels, entries = profiles.kinds[places[0]], None, profiles.entries[:, places]
    values: list[float | None]
    if kind == "category":
        levels = [clean_text(profiles.levels[i]) for i in places]
        codes = np.where((entries > 0).any(axis=1), entries.argmax(axis=1), -1)
        values = [None if is_missing else int(code) for code, is_missing in zip(codes, np.isnan(entries).any(axis=1))]
    elif kind == "date":
        values = [None if np.isnan(day) else int(day // 1) for day in entries[:, 0]]
    else:
        values = [None if np.isnan(value) else float(f"{value:.4g}") for value in entries[:, 0].tolist()]
    unit = clean_text(profiles.units.get(column, ""))
    return {"column": clean_text(column), "kind": kind, "unit": unit, "levels": levels, "values": values}


def columns_are_terms(X: Array | AffinityGraph, feature_names: Sequence[str] | None) -> bool:
    """Whether the columns are counts or weights of terms: sparse, named and non-negative."""
    if isinstance(X, AffinityGraph) or not sp.issparse(X) or feature_names is None:
        return False
    return X.nnz == 0 or bool(X.data.min() >= 0)


def describe_rows(
    X: Array | AffinityGraph,
    labels: np.ndarray,
    n_clusters: int,
    texts: Sequence[str] | None,
    feature_names: Sequence[str] | None,
) -> Profiles | None:
    """Return the terms of documents, or the columns of other rows, by cluster; None for a graph."""
    terms: list[Terms] | None = None
    if feature_names is not None and columns_are_terms(X, feature_names):
        terms = matrix_terms(X, labels, n_clusters, feature_names)
    elif texts is not None:
        terms = text_terms(texts, labels, n_clusters)
    if terms is not None:
        nothing, means = np.zeros(0), np.zeros((n_clusters, 0))
        return Profiles([], [], [], nothing, nothing, means, np.zeros((n_clusters + 1, 0)), {"text": terms})
    return None if isinstance(X, AffinityGraph) else profile_rows(X, labels, n_clusters, feature_names)


def profile_lines(profiles: Profiles | None) -> list[Summary]:
    """Return the means and shares of all columns by cluster, of those that differ most if there are many."""
    if profiles is None or not profiles.columns:
        return []
    largest = np.abs(profiles.differences).max(axis=0)
    shown = np.sort(np.argsort(-largest, kind="stable")[:MAX_PROFILES])
    lines = []
    for i in shown:
        column, level = profiles.columns[i], profiles.levels[i]
        in_words = (profiles.kinds[i], profiles.units.get(column, ""))
        lines.append(
            {
                "column": clean_text(column),
                "level": None if level is None else clean_text(level),
                "used": column not in profiles.left_out,
                "overall": format_value(float(profiles.overall[i]), *in_words),
                "values": [format_value(float(value), *in_words) for value in profiles.means[:, i]],
                "differences": [round_float(value, 2) for value in profiles.differences[:, i]],
            }
        )
    return lines

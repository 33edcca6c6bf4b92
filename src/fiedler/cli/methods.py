"""The methods of the command line, a row each, and what is done with the rows before them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from .. import LCGMM, NLE, EmbedKMeans, GaussianMixture, LapGMM, LPIClustering, ManifoldClustering, SpectralClustering
from .._validation import check_range, check_rows_differ, did_you_mean, first_few
from ..io import Input
from ..text import DocumentVectorizer

T = TypeVar("T")

FEW_COLUMNS = 20  # up to so many the mixtures see all of them
KEPT = 0.98  # of the variance, by principal components, above
KEPT_OF_TERMS = 100  # components of sparse rows


class Method(NamedTuple):
    """How a clusterer is made, and what it can be told."""

    make: Callable[[Any, int, Any], Any]  # clusters, seed, principal components for a mixture
    about: str
    takes: frozenset[str] = frozenset()  # 'labels' of some rows, 'pairs'


BOTH = frozenset({"labels", "pairs"})

METHODS = {
    "auto": Method(
        lambda k, seed, pca: ManifoldClustering(k, random_state=seed),
        "several partitions, one choice without labels",
        BOTH,
    ),
    "lapgmm": Method(
        lambda k, seed, pca: LapGMM(k, pca=pca, random_state=seed), "a Gaussian mixture smooth over the graph", BOTH
    ),
    "lcgmm": Method(
        lambda k, seed, pca: LCGMM(k, pca=pca, random_state=seed), "the same with a Kullback-Leibler term", BOTH
    ),
    "spectral": Method(
        lambda k, seed, pca: SpectralClustering(k, random_state=seed), "normalised cut", frozenset({"pairs"})
    ),
    "lpi": Method(lambda k, seed, pca: LPIClustering(k, random_state=seed), "locality preserving indexing"),
    "nle": Method(
        lambda k, seed, pca: NLE(k, random_state=seed), "nonnegative Laplacian embedding", frozenset({"pairs"})
    ),
    "gmm": Method(lambda k, seed, pca: GaussianMixture(k, pca=pca, random_state=seed), "a Gaussian mixture", BOTH),
    "kmeans": Method(lambda k, seed, pca: EmbedKMeans(k, random_state=seed), "k-means"),
}

SCALES: dict[str, Callable[[], Any] | None] = {
    "standard": StandardScaler,  # columns to mean 0 and variance 1
    "range": MinMaxScaler,  # columns to [0, 1]
    "unit": Normalizer,  # rows to length 1
    "none": None,
}

FOR_SPARSE = ("unit", "none")

# What is done first with each kind of rows unless told otherwise: columns of a table have units, images a brightness.
USUAL_SCALE = {"table": "standard", "array": "none", "images": "unit", "texts": "none"}


class Prepared(NamedTuple):
    """Rows as the methods take them, and the fitted steps that made them so."""

    steps: list[tuple[str, Any]]
    rows: Any
    scale: str


def prepare(found: Input, scale: str = "auto") -> Prepared:
    """From what was read to rows that differ: terms of texts, then a scale."""
    steps, rows = [], found.X
    if found.kind == "texts":
        words = DocumentVectorizer("tfidf")
        with named_by_id(found, lambda: words.empty_):
            steps, rows = [("terms", words)], words.fit_transform(rows)
    check_range(rows.data if sp.issparse(rows) else rows)
    scale = USUAL_SCALE[found.kind] if scale == "auto" else scale
    maker = pick(SCALES, scale, "--scale")
    if maker is not None:
        if sp.issparse(rows) and scale not in FOR_SPARSE:
            raise ValueError(f"--scale {scale} would fill sparse rows; give {' or '.join(FOR_SPARSE)}")
        scaler = maker()
        steps, rows = [*steps, ("scale", scaler)], scaler.fit_transform(rows)
    check_rows_differ(rows)
    return Prepared(steps, rows, scale)


@contextmanager
def named_by_id(found: Input, wordless: Callable[[], np.ndarray]) -> Iterator[None]:
    """Texts of which no known word is left are named as the reader knows them; of empty ones it was said before."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\d+ document\(s\) hold no known term")
        yield
        names = [found.names[row] for row in wordless() if found.X[row].strip()]
    if names:
        text = f"{len(names)} document(s) hold no known word ({first_few(names)}); they are kept, and resemble nothing"
        warnings.warn(text, UserWarning, stacklevel=2)


def pick(table: Mapping[str, T], name: str, option: str) -> T:
    """The row of a table by its name; one that is mistyped is guessed at."""
    if name in table:
        return table[name]
    raise ValueError(f"{option} {name!r} is not known{did_you_mean(name, table)}; choose one of {', '.join(table)}")


def clusterer(method: str, n_clusters: Any, rows: Any, seed: int = 0) -> Any:
    """The method by its name, with as many principal components as suit the rows."""
    return METHODS[method].make(n_clusters, seed, components(rows))


def components(rows: Any) -> float | int | None:
    """Principal components for the mixtures: all of a few columns, a number of terms, else a share of the variance."""
    if sp.issparse(rows):
        return max(1, min(KEPT_OF_TERMS, *(size - 1 for size in rows.shape)))
    return None if rows.shape[1] <= FEW_COLUMNS else KEPT


def read_k(text: str) -> int | str:
    """``-k`` as a number, or 'auto'."""
    if text == "auto":
        return text
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(f"-k must be a whole number of at least 1, or auto; got {text!r}")
    return int(text)


def check_k(k: int | str, found: Input) -> None:
    """Refuse a single row, more clusters than rows, and fewer than the known classes that are to steer them."""
    if found.n_rows < 2:
        raise ValueError("there is one row only, and clusters are made of several; give more rows")
    if k == "auto":
        return
    if int(k) > found.n_rows:
        raise ValueError(f"-k {k} clusters were asked of {found.n_rows} rows; ask for at most {found.n_rows}")
    classes = found.codes()[1]
    if found.steers and int(k) < len(classes):
        raise ValueError(
            f"the known labels name {len(classes)} classes ({first_few(classes)}) and -k asks for {k} clusters; "
            f"ask for {len(classes)} or more, or for -k auto"
        )

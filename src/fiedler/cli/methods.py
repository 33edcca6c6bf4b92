"""The methods of the command line, a row each, and what is done with the rows before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import scipy.sparse as sp
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from .. import LCGMM, NLE, EmbedKMeans, GaussianMixture, LapGMM, LPIClustering, ManifoldClustering, SpectralClustering
from .._validation import check_int, choose
from ..inputs import Input
from ..text import DocumentVectorizer

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
    """From what was read to rows: terms of texts, then a scale."""
    steps, rows = [], found.X
    if found.kind == "texts":
        steps, rows = [("terms", words := DocumentVectorizer("tfidf"))], words.fit_transform(rows)
    scale = USUAL_SCALE[found.kind] if scale == "auto" else scale
    maker = choose(SCALES, scale, option="scale")
    if maker is None:
        return Prepared(steps, rows, scale)
    if sp.issparse(rows) and scale not in FOR_SPARSE:
        raise ValueError(f"scale={scale!r} would fill sparse rows; of {', '.join(SCALES)} they take unit and none")
    scaler = maker()
    return Prepared([*steps, ("scale", scaler)], scaler.fit_transform(rows), scale)


def clusterer(method: str, n_clusters: Any, rows: Any, seed: int = 0) -> Any:
    """The method by its name, with as many principal components as suit the rows."""
    return choose(METHODS, method, option="method").make(n_clusters, seed, components(rows))


def components(rows: Any) -> float | int | None:
    """Principal components for the mixtures: all of a few columns, a number of terms, else a share of the variance."""
    if sp.issparse(rows):
        return max(1, min(KEPT_OF_TERMS, *(size - 1 for size in rows.shape)))
    return None if rows.shape[1] <= FEW_COLUMNS else KEPT


def check_k(text: str, n_rows: int) -> int | str:
    """``-k`` as a number that the rows allow, or 'auto'."""
    if text == "auto":
        return text
    k = check_int(int(text) if text.isascii() and text.isdigit() else text, "-k")
    if k > n_rows:
        raise ValueError(f"-k {k} clusters were asked of {n_rows} rows; ask for at most {n_rows}")
    return k

"""The methods of the command line: a row each, and the pipeline from what was read to clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import scipy.sparse as sp
from sklearn.pipeline import Pipeline
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

# What is done first with each kind of rows unless told otherwise: columns of a table have units, images a brightness.
USUAL_SCALE = {"table": "standard", "array": "none", "images": "unit", "texts": "none"}


def pipeline(found: Input, method: str, n_clusters: Any, *, scale: str = "auto", seed: int = 0) -> Pipeline:
    """From what was read to clusters: terms of texts, a scale, the method under the name ``cluster``."""
    maker = choose(METHODS, method, option="method").make
    steps = [("terms", DocumentVectorizer("tfidf"))] if found.kind == "texts" else []
    scaler = choose(SCALES, USUAL_SCALE[found.kind] if scale == "auto" else scale, option="scale")
    if scaler is not None:
        steps.append(("scale", scaler()))
    return Pipeline([*steps, ("cluster", maker(n_clusters, seed, components(found)))])


def components(found: Input) -> float | int | None:
    """Principal components for the mixtures: all of a few columns, a number of terms, else a share of the variance."""
    if found.kind == "texts" or sp.issparse(found.X):
        return min(KEPT_OF_TERMS, found.n_rows - 1)
    return None if found.X.shape[1] <= FEW_COLUMNS else KEPT


def check_k(text: str, n_rows: int) -> int | str:
    """``-k`` as a number that the rows allow, or 'auto'."""
    if text == "auto":
        return text
    k = check_int(int(text) if text.isascii() and text.isdigit() else text, "-k")
    if k > n_rows:
        raise ValueError(f"-k {k} clusters were asked of {n_rows} rows; ask for at most {n_rows}")
    return k

"""Views of the rows, and the partitions that several methods find in them.

=======================  =========================================================================================
rows                     the rows as they are
whitened by rows         scaled so that all rows scatter equally in all directions
whitened by cells        so that the rows inside small cells do
whitened by edges        so that neighbours in the graph do, by X'LX, the matrix of LPI [lpi, Eq. 1]
LPI                      rows at unit length, mapped to the K - 1 coordinates of LPI
indicators               rows of a table with the indicators of its categories
=======================  =========================================================================================

Which of them shows the clusters depends on the data: columns of different units or correlated columns hide clusters
from the rows as they are, and whitening hides clusters that differ in the directions of largest scatter. Whitening
rescales the leading principal components, and is a view of the same rows only if these hold most of the variance, as
those of images and tables do. The variance of documents and of text embeddings is spread over hundreds of components;
their other view is LPI, which finds few directions by the graph instead of by the variance. In every view

- *communities* are searched on the self-tuned graph of nine neighbours, at the default resolution and at 1,
- Genie's *linkage* cuts the spanning tree of these neighbours, with mutual and with local lengths,

and on the leading principal components of dense rows, in the coordinates of LPI, and in indicators, also *k-means*, and
*mixtures* from these partitions.

In the rows of a table, a category is what the other columns tell about it (:mod:`fiedler.table.encoder`), which graphs
need; the indicators themselves are better for k-means and mixtures where categories tell more than that. They replace
the whitened views of such a table, whose columns have a common scale and whose indicators whitening would blow up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..clustering.documents import RIDGE, LPIClustering
from ..core.arrays import Array, namespace, random_subset, take_rows, to_numpy
from ..core.kmeans import kmeans
from ..core.parallel import map_tasks
from ..core.pca import fit_pca
from ..embedding.lpi import LPI
from ..embedding.whitening import Whitening
from ..errors import InputError, SingularCovarianceError, ignore_warnings
from ..graph.affinity import AffinityGraph
from ..graph.coarsen import coarsen
from ..graph.community import MultilevelSearch
from ..graph.constraints import PairwiseConstraints, add_constraints, attractive_part
from ..graph.neighbors import Edges
from ..graph.recipes import default_recipe
from ..graph.tree import EdgeLength, cut_tree, genie_merges, spanning_trees
from ..graph.weights import may_be_texts, weigh_graph
from ..mixture import GaussianMixture
from ..mixture.base import fit_supernodes
from ..mixture.statistics import group_statistics
from .candidates import MAX_ITERATIONS, ROWS, Candidate, as_labels, max_supernodes

LPI_COORDINATES, INDICATORS = "LPI", "indicators"

MIN_EXPLAINED = 0.75  # share of the variance that the leading principal components of low-dimensional rows hold ...
MAX_EXPLAINED_ROWS = 5_000  # ... estimated from at most so many rows
CELLS_PER_CLUSTER = 3  # for whitening by cells
RESOLUTIONS = {"default resolution": None, "resolution 1": 1.0}
LINKAGES: dict[str, tuple[EdgeLength, float]] = {"mutual, Gini 0.3": ("mutual", 0.3), "local, Gini 0.1": ("local", 0.1)}
ROW_LINKAGES: dict[str, tuple[EdgeLength, float]] = {**LINKAGES, "mutual, Gini 0.1": ("mutual", 0.1)}
WHITENING_COMPONENTS, KMEANS_COMPONENTS, MIXTURE_COMPONENTS = 50, 50, 30  # principal components of rows, at most
KMEANS_STARTS = 3

COMMUNITIES = "communities"


@dataclass(frozen=True, eq=False)
class View:
    """Rows as one view shows them, with their neighbours."""

    name: str  # `ROWS` or a key of `VIEWS`
    transformer: Whitening | LPI | None  # the map from the rows to the view; None for the rows themselves
    rows: Array
    edges: Edges  # the nearest neighbours
    graph: AffinityGraph  # their self-tuned graph, connected, with known must-links as edges
    search_graph: AffinityGraph  # the same with known pairs as weights of either sign
    weights: np.ndarray | None = None  # of the rows, of mean one, which the graphs have already
    indicators: Array | None = None  # the same rows of a table with the indicators of its categories

    @classmethod
    def of(
        cls,
        name: str,
        rows: Array,
        transformer: Whitening | LPI | None = None,
        *,
        pairs: PairwiseConstraints | None = None,
        weights: np.ndarray | None = None,
        n_jobs: int | None = None,
    ) -> View:
        """Search the neighbours of rows that have been transformed already."""
        edges, graph = default_recipe(rows.shape[0], connect="mst", n_jobs=n_jobs).build_with_edges(rows)
        graph = weigh_graph(graph if pairs is None else add_constraints(graph, pairs), weights)
        return cls(name, transformer, rows, edges, attractive_part(graph), graph, weights)


def whitened_view(
    name: str,
    rows: View,
    n_clusters: int,
    random_state: int,
    pairs: PairwiseConstraints | None = None,
    *,
    by: Literal["rows", "cells", "edges"],
) -> View | None:
    """Return a whitened view of rows; None if they have no scatter of this kind."""
    n_cells, graph = CELLS_PER_CLUSTER * n_clusters, rows.graph if by == "edges" else None
    whitening = Whitening(
        by, max_components=WHITENING_COMPONENTS, n_cells=n_cells, graph=graph, random_state=random_state
    )
    try:
        whitened = whitening.fit(rows.rows)._embed(rows.rows)
    except InputError:  # neighbours that all coincide
        return None
    return View.of(name, whitened, whitening.set_params(graph=None), pairs=pairs, weights=rows.weights)


def lpi_view(
    name: str, rows: View, n_clusters: int, random_state: int, pairs: PairwiseConstraints | None = None
) -> View | None:
    """Return the coordinates of rows in LPI; None if it cannot be learned from them."""
    try:
        rng = np.random.RandomState(random_state)
        lpi = LPIClustering(n_clusters)._fit_map(rows.rows, None, n_clusters, rng, rows.weights)
    except InputError:  # rows of one direction, or of one column
        return None
    del lpi.embedding_, lpi.graph_  # the view has its own
    return View.of(name, lpi._embed(rows.rows), lpi, pairs=pairs, weights=rows.weights)


def indicator_view(
    name: str, rows: View, n_clusters: int, random_state: int, pairs: PairwiseConstraints | None = None
) -> View | None:
    """Return the rows of a table with the indicators of its categories."""
    return View.of(name, rows.indicators, pairs=pairs, weights=rows.weights)


class ViewKind(NamedTuple):
    """How a view is made, and for which rows."""

    build: Callable[..., View | None]  # called with name, rows, n_clusters, random_state and pairs
    is_for: Literal["few components", "many components", "tables"]  # that hold most of the variance of the rows


VIEWS = {
    "whitened by rows": ViewKind(partial(whitened_view, by="rows"), is_for="few components"),
    "whitened by cells": ViewKind(partial(whitened_view, by="cells"), is_for="few components"),
    "whitened by edges": ViewKind(partial(whitened_view, by="edges"), is_for="few components"),
    LPI_COORDINATES: ViewKind(lpi_view, is_for="many components"),
    INDICATORS: ViewKind(indicator_view, is_for="tables"),
}


def is_low_dimensional(X: Array) -> bool:
    """Whether few principal components hold most of the variance of rows; sparse rows are taken for documents."""
    if sp.issparse(X) or X.shape[1] <= WHITENING_COMPONENTS:
        return not sp.issparse(X)
    share = min(1.0, MAX_EXPLAINED_ROWS / X.shape[0])
    some = take_rows(X, random_subset(X.shape[0], share, np.random.RandomState(0)))
    variance = lambda rows: float(namespace(rows).sum(namespace(rows).var(rows, axis=0)))  # noqa: E731
    return variance(leading_components(some, WHITENING_COMPONENTS, random_state=0)) >= MIN_EXPLAINED * variance(some)


def are_documents(X: Array) -> bool:
    """Whether rows are taken for documents or embeddings, of which near-copies count as one."""
    has_many_columns = sp.issparse(X) or X.shape[1] > WHITENING_COMPONENTS
    return has_many_columns and may_be_texts(X) and not is_low_dimensional(X)


# ---------------------------------------------------------------------------------------------------------- partitions


def find_communities(
    view: View, n_clusters: int, random_state: int, details: Iterable[str] = tuple(RESOLUTIONS)
) -> tuple[list[Candidate], float]:
    """Search communities on the graph of a view, at several resolutions; return also its eigengap log λ_{K+1}/λ_K."""
    rng = np.random.RandomState(random_state)
    search, found = MultilevelSearch.on(view.search_graph, n_clusters, rng), []
    for detail in details:
        start_time = time.perf_counter()
        result = search.find(n_clusters, rng, resolution=RESOLUTIONS[detail])
        labels, seconds = as_labels(result.labels), time.perf_counter() - start_time
        found.append(Candidate(COMMUNITIES, labels, seconds, detail, view.name, resolution=result.resolution))
    return found, search.eigengap(n_clusters)


def find_linkages(view: View, n_clusters: int) -> Iterator[Candidate]:
    """Cut spanning trees of the neighbours in a view by Genie's rule."""
    linkages = ROW_LINKAGES if view.name == ROWS else LINKAGES
    lengths = sorted({length for length, _ in linkages.values()})
    trees = dict(zip(lengths, spanning_trees(view.rows, view.edges, lengths)))
    for detail, (length, threshold) in linkages.items():
        start_time = time.perf_counter()
        labels = as_labels(cut_tree(genie_merges(trees[length], threshold), n_clusters))
        yield Candidate("linkage", labels, time.perf_counter() - start_time, detail, view.name)


def find_kmeans(view: View, n_clusters: int, random_state: int) -> Candidate:
    """Run k-means on the leading principal components of a view."""
    start_time = time.perf_counter()
    rows = leading_components(view.rows, KMEANS_COMPONENTS, random_state)
    options: dict[str, Any] = {"n_init": KMEANS_STARTS, "sample_weight": view.weights, "random_state": random_state}
    labels = as_labels(kmeans(rows, n_clusters, **options).labels)
    return Candidate("k-means", labels, time.perf_counter() - start_time, view=view.name)


def find_mixtures(
    view: View, starts: list[Candidate], n_clusters: int, random_state: int, ridge: float | Literal["oas"] = "oas"
) -> Iterator[Candidate]:
    """Fit mixtures with full covariances from given partitions, on supernodes of the graph.

    Supernodes that a start divides are divided, so that EM begins from the start itself. A fit that ends in a singular
    covariance is left out.
    """
    Z = leading_components(view.rows, MIXTURE_COMPONENTS, random_state)
    rng = np.random.RandomState(random_state)
    supernodes = coarsen(view.graph, max_supernodes(Z.shape[1]), rng).supernodes
    for start in starts:
        start_time = time.perf_counter()
        parts, groups = np.unique(supernodes * n_clusters + start.labels, return_inverse=True)
        model = GaussianMixture(n_clusters, ridge=ridge, max_iter=MAX_ITERATIONS, random_state=random_state)
        try:
            with ignore_warnings(Warning):  # a fit that stops early or loses a cluster is a candidate that loses
                statistics = group_statistics(Z, groups, weights=view.weights)
                fit = fit_supernodes(model, statistics, None, parts % n_clusters)
        except SingularCovarianceError:
            continue
        labels, seconds = to_numpy(fit.resp).argmax(axis=1)[groups], time.perf_counter() - start_time
        yield Candidate("mixture", labels, seconds, f"from {start.family}", view.name)


def leading_components(X: Array, n_components: int, random_state: int) -> Array:
    """Return the leading principal components of rows with more columns; other rows as they are."""
    if X.shape[1] <= n_components:
        return X
    return fit_pca(X, min(n_components, min(X.shape)), random_state=random_state)(X)


def find_in_rows(
    rows: View, n_clusters: int, communities: Candidate, random_state: int
) -> tuple[list[Candidate], float]:
    """Return the partitions in the rows themselves, besides known communities, and the eigengap.

    K-means and mixtures, which need the principal components, are left out for sparse rows.
    """
    found, eigengap = find_communities(rows, n_clusters, random_state, ("resolution 1",))
    linkages = list(find_linkages(rows, n_clusters))
    if sp.issparse(rows.rows):
        return [*found, *linkages], eigengap
    means = find_kmeans(rows, n_clusters, random_state)
    mixtures = find_mixtures(rows, [communities, linkages[0], means], n_clusters, random_state)
    return [*found, *linkages, means, *mixtures], eigengap


def find_in_views(
    names: Sequence[str],
    rows: View,
    n_clusters: int,
    random_state: int,
    pairs: PairwiseConstraints | None = None,
    n_jobs: int | None = None,
) -> tuple[dict[str, View], list[Candidate], dict[str, float]]:
    """Return other views of rows, by their names in `VIEWS`, the partitions found in them, and their eigengaps."""

    def find(name: str) -> tuple[View, list[Candidate], float] | None:
        view = VIEWS[name].build(name, rows, n_clusters, random_state, pairs)
        if view is None:
            return None
        partitions, eigengap = find_communities(view, n_clusters, random_state)
        partitions += find_linkages(view, n_clusters)
        if view.name == LPI_COORDINATES:
            means = find_kmeans(view, n_clusters, random_state)
            partitions += [means, *find_mixtures(view, [means], n_clusters, random_state, RIDGE)]
        if view.name == INDICATORS:
            means = find_kmeans(view, n_clusters, random_state)
            starts = [partitions[0], partitions[len(RESOLUTIONS)], means]
            partitions += [means, *find_mixtures(view, starts, n_clusters, random_state)]
        return view, partitions, eigengap

    found = [result for result in map_tasks(find, names, "comparing views", n_jobs) if result is not None]
    views = {view.name: view for view, _, _ in found}
    partitions = [partition for _, of_view, _ in found for partition in of_view]
    return views, partitions, {view.name: eigengap for view, _, eigengap in found}

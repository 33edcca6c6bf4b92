"""How many clusters there are, by what holds still when the data change and by where the spectrum jumps.

Communities are searched on the graphs of several random parts of the rows, for every K. Where K is right, or too small
in a way that the data dictate, two parts give the rows they share the same clusters; where it is too large, something
is cut at random. The adjusted Rand index says how far they agree. Of the numbers that are about as stable as the most
stable one (`AS_STABLE`), that of the largest relative eigengap log λ_(K+1)/λ_K is taken; either kind of evidence alone
is often fooled, by a coarse structure that is always stable or by two clusters far from the rest.

Modularity stands beside them as evidence only: that of a curved cluster rises when it is cut. docs/manifold.md has the
figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from joblib import Parallel, delayed

from ..core.backend import to_numpy
from ..core.blocks import one_blas_thread
from ..core.eigen import smallest_eigenpairs
from ..core.progress import track_progress
from ..core.rows import random_subset
from ..core.sparse import to_scipy
from ..graph.affinity import AffinityGraph
from ..graph.community import communities, modularity
from ..metrics import adjusted_rand_index
from .n_clusters import NClustersChoice

PARTS = 4
SHARE = 0.8  # of the rows, in each part
COUNTED_ROWS = 2500  # a sample of so many tells as much
AS_STABLE = 0.05  # in the adjusted Rand index
FLOOR = 0.003  # of eigenvalues: ratios of smaller ones only tell how small a bridge is


def count_clusters(
    graph: AffinityGraph,
    ks: Sequence[int],
    part_graph: Callable[[np.ndarray], AffinityGraph],
    *,
    random_state: np.random.RandomState,
    n_jobs: int | None = None,
) -> NClustersChoice:
    """The number of clusters, with the evidence.

    Parameters
    ----------
    graph : AffinityGraph
        Of all rows, for the eigengaps.
    ks : list of int
        The numbers to choose from.
    part_graph : callable
        From row numbers to the graph on these rows alone.
    random_state : RandomState
    n_jobs : int, optional
        Threads, one a part.
    """
    n = graph.n_nodes
    sample = random_subset(n, min(1.0, COUNTED_ROWS / n), random_state)
    parts = [sample[random_subset(len(sample), SHARE, random_state)] for _ in range(PARTS)]
    possible = [k for k in ks if k <= min(map(len, parts)) // 2]
    if len(possible) < 2:
        only = min(*ks, n) if not possible else possible[0]
        return NClustersChoice(only, "lack of choice", [only], None)
    seeds = random_state.randint(2**31 - 1, size=PARTS)
    jobs = (delayed(_partitions)(part_graph(rows), possible, seed) for rows, seed in zip(parts, seeds))
    with one_blas_thread():
        found = list(
            track_progress(Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(jobs), "parts", PARTS)
        )
    agreements = _agreements([run[0] for run in found], parts)
    values = to_numpy(smallest_eigenpairs(graph, possible[-1] + 1, random_state=random_state).values)
    values = np.maximum(values, FLOOR)
    gaps = np.array([np.log(values[k] / values[k - 1]) for k in possible])
    means, errors = agreements.mean(axis=1), agreements.std(axis=1, ddof=1) / np.sqrt(agreements.shape[1])
    best = int(np.argmax(np.where(means >= means.max() - AS_STABLE, gaps, -np.inf)))
    return NClustersChoice(
        possible[best],
        "stability, then eigengap",
        possible,
        gaps.tolist(),
        means.tolist(),
        errors.tolist(),
        np.mean([run[1] for run in found], axis=0).tolist(),
    )


def _agreements(found: Sequence[Sequence[np.ndarray]], parts: Sequence[np.ndarray]) -> np.ndarray:
    """The adjusted Rand index of every two parts on the rows they share, (numbers, pairs)."""
    table = []
    for (one, mine), (other, theirs) in combinations(zip(found, parts), 2):
        _, first, second = np.intersect1d(mine, theirs, return_indices=True)
        table.append([adjusted_rand_index(a[first], b[second]) for a, b in zip(one, other)])
    return np.array(table).T


def _partitions(graph: AffinityGraph, ks: Sequence[int], seed: int) -> tuple[list[np.ndarray], list[float]]:
    """Labels and modularity of the communities on one part, for every K."""
    rng = np.random.RandomState(seed)
    labels = [to_numpy(communities(graph, k, random_state=rng).labels) for k in ks]
    return labels, [modularity(graph, own) for own in labels]


def subgraph(graph: AffinityGraph, rows: np.ndarray) -> AffinityGraph:
    """The graph on some of its nodes."""
    return AffinityGraph.from_matrix(to_scipy(graph.weights)[rows][:, rows])

"""First memberships: from k-means, the graph or a nonnegative factorisation, at random, or given by the caller."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from ..core.backend import Array, asarray_like, namespace, one_hot, to_numpy
from ..core.kmeans import kmeans
from ..core.rows import normalize_row_sums
from ..core.sparse import is_sparse, to_scipy
from ..errors import InputError
from ..graph.community import communities
from ..graph.constraints import PairwiseConstraints
from ..graph.labels import check_partial_labels, spread_over_groups
from ..graph.partition import spectral_labels
from .hooks import MixtureProblem


def _kmeans_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    return one_hot(kmeans(problem.Z, k, n_init=10, random_state=rng).labels, k, problem.Z)


def _spectral_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    assert problem.graph is not None
    return one_hot(spectral_labels(problem.graph, k, random_state=rng), k, problem.Z)


def _community_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    """Find communities of the graph; k-means on the rows is one of the partitions from which the search begins."""
    assert problem.graph is not None
    kmeans_labels = kmeans(problem.Z, k, n_init=1, random_state=rng).labels
    return one_hot(communities(problem.graph, k, starts=[kmeans_labels], random_state=rng).labels, k, problem.Z)


def _random_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    """Assign rows to the nearest of k rows drawn by k-means++, after one iteration of k-means."""
    return one_hot(kmeans(problem.Z, k, n_init=1, max_iter=1, random_state=rng).labels, k, problem.Z)


def _nmf_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    """Assign rows to their largest coefficient in X ≈ VU', V and U non-negative, with columns of U at length one."""
    X = _nonnegative(problem.Z if problem.rows is None else problem.rows)
    model = NMF(k, random_state=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start need not have converged
        V = model.fit_transform(X)
    labels = (V * np.linalg.norm(model.components_, axis=1)).argmax(axis=1)
    return one_hot(asarray_like(labels.astype(np.int64), problem.Z), k, problem.Z)


def _nonnegative(X: Any) -> Any:
    """Return the rows on the host, or raise an error if one has a negative entry."""
    host = to_scipy(X) if is_sparse(X) else to_numpy(X)
    smallest = float(host.min())
    if smallest < 0:
        raise _invalid_init(
            f"init='nmf' needs rows without negative entries; the smallest is {smallest:.3g}",
            "use another init, such as 'kmeans'",
        )
    return host


STARTS = {
    "kmeans": _kmeans_start,
    "spectral": _spectral_start,
    "community": _community_start,
    "random": _random_start,
    "nmf": _nmf_start,
}
GRAPH_STARTS = ("spectral", "community", "auto")  # values of init that need a graph
AUTO_STARTS = ("community", "spectral", "kmeans")  # the starts that init="auto" compares


def memberships_from_array(init: Any, k: int, Z: Array) -> Array:
    """Convert labels (n,) or memberships (n, k) given as ``init`` to memberships whose rows sum to one."""
    n = Z.shape[0]
    expected = f"labels 0..{k - 1} of shape ({n},), or non-negative memberships of shape ({n}, {k})"
    try:
        host = to_numpy(init)
    except ValueError as error:
        raise _invalid_init(f"init must be {expected}; its rows differ in length") from error
    if host.dtype.kind not in "iuf":
        raise _invalid_init(f"init must be {expected}; got entries of type {host.dtype}")
    if host.shape == (n,) and host.dtype.kind in "iu" and host.min() >= 0 and host.max() < k:
        return one_hot(host.astype(np.int64), k, Z)
    if host.shape == (n, k) and np.isfinite(host).all() and (host >= 0).all() and (host.sum(axis=1) > 0).all():
        return asarray_like(normalize_row_sums(host), Z, dtype=Z.dtype)
    raise _invalid_init(
        f"init must be one of {[*STARTS, 'auto']}, {expected}; got an array of shape {host.shape} and type {host.dtype}"
    )


def _invalid_init(problem: str, remedy: str = "") -> InputError:
    return InputError(problem, remedy, code="invalid_init", parameter="init")


def align_to_known(known: Array | None, memberships: Array) -> Array:
    """Renumber the clusters so that as many known rows as possible are in the cluster they belong to."""
    if known is None:
        return memberships
    counts = to_numpy(known.T @ memberships)
    _, columns = linear_sum_assignment(counts, maximize=True)
    return namespace(memberships).take(memberships, asarray_like(columns, memberships), axis=1)


def known_memberships(y: Any, k: int, Z: Array, constraints: PairwiseConstraints | None) -> Array | None:
    """Return one-hot rows where ``y`` gives a cluster, and for rows hard must-links join to them; zeros elsewhere."""
    labels = check_partial_labels(y, Z.shape[0], k)
    if labels is not None and constraints is not None and constraints.hard:
        labels = spread_over_groups(labels, constraints.groups)
    return None if labels is None else one_hot(labels, k, Z)

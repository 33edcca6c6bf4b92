"""Numbers of clusters: in the order of their first rows.

An iteration can end in the same partition from several starts, and rounding, which depends on the processor and the
number of threads, then decides between them. So numbers are not left to the start: the cluster of the first row is 0,
that of the first row outside it is 1, and so on.
"""

from __future__ import annotations

import numpy as np

from .backend import Array, asarray_like, namespace, to_numpy


def order_by_first_row(labels: Array, n_clusters: int) -> np.ndarray:
    """Return the clusters in the order of their first rows; those without rows come last.

    Parameters
    ----------
    labels : array of shape (n,)
        Clusters 0..n_clusters-1, of any array library; negative for rows in none.
    n_clusters : int

    Returns
    -------
    order : ndarray of shape (n_clusters,)
        The cluster that gets each number.

    Examples
    --------
    >>> order_by_first_row(np.array([2, 2, 0, 2]), 3)
    array([2, 0, 1])
    """
    host = to_numpy(labels)
    clusters, first = np.unique(host, return_index=True)
    first_row = np.full(n_clusters, len(host))
    first_row[clusters[clusters >= 0]] = first[clusters >= 0]
    return np.argsort(first_row, kind="stable")


def renumber(labels: Array, order: np.ndarray) -> Array:
    """Return labels in which cluster ``order[j]`` has the number j; -1 stays.

    Examples
    --------
    >>> renumber(np.array([2, 2, 0, 2]), np.array([2, 0, 1]))
    array([0, 0, 1, 0])
    """
    return asarray_like(np.append(np.argsort(order), -1)[to_numpy(labels)], labels, dtype=labels.dtype)


def take_clusters(values: Array, order: np.ndarray, axis: int = 0) -> Array:
    """Return the values of clusters, along one axis, in another order."""
    return namespace(values).take(values, asarray_like(order, values), axis=axis)

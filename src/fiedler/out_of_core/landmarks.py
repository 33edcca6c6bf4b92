"""The landmarks of a model that was fitted in blocks: which rows they are, and a model of their own for reports."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from .._validation import check_int
from ..clustering.manifold import ManifoldClustering
from ..core.backend import Array
from ..core.rows import take_rows
from ..errors import InputError
from .rows import RowBlocks, select_values
from .workspace import Workspace

MIN_CLUSTER_LANDMARKS = 100  # rows of a cluster that are landmarks, if it has so many; fewer of many clusters


# ---------------------------------------------------------------------------------------------------------- the choice


def add_rare_clusters(rows: RowBlocks, result: str, numbers: np.ndarray, n_clusters: int) -> np.ndarray:
    """Add rows of the clusters of which a sample has few, so that new points can be placed in these.

    Parameters
    ----------
    rows : RowBlocks
    result : str
        The step with the labels of the rows.
    numbers : ndarray of shape (m,)
        The sampled rows, in ascending order.
    n_clusters : int

    Returns
    -------
    ndarray
        The numbers of all landmarks, in ascending order.
    """
    if len(numbers) == rows.n_rows:
        return numbers
    run, n_wanted = rows.run, min(MIN_CLUSTER_LANDMARKS, len(numbers) // n_clusters)
    (labels,) = select_values(run, "sampled-labels", result, ("labels",), numbers, rows.starts)
    n_lacking = np.maximum(n_wanted - np.bincount(labels, minlength=n_clusters), 0)
    if not n_lacking.any():
        return numbers
    run.map("rare-clusters", find_rare, rows.blocks, result=result, is_rare=n_lacking > 0, n_wanted=n_wanted)
    parts = [run.workspace.read("rare-clusters", block, "places", "labels") for block in rows.blocks]
    places = np.concatenate([rows.starts[block] + part for block, (part, _) in zip(rows.blocks, parts)])
    of_places = np.concatenate([part for _, part in parts])
    is_new = ~np.isin(places, numbers)
    places, of_places = places[is_new], of_places[is_new]
    added = [evenly_spaced(places[of_places == c], n_lacking[c]) for c in np.flatnonzero(n_lacking)]
    return np.union1d(numbers, np.concatenate(added))


def find_rare(workspace: Workspace, block: int, *, result: str, is_rare: np.ndarray, n_wanted: int) -> dict[str, Array]:
    """Return some rows of the rare clusters, by their places in a block, and the labels of these."""
    labels = workspace.read_one(result, block, "labels")
    rows = np.flatnonzero(is_rare[labels])
    rows = rows[np.argsort(labels[rows], kind="stable")]
    groups = np.split(rows, np.flatnonzero(np.diff(labels[rows])) + 1)
    places = np.concatenate([evenly_spaced(group, n_wanted) for group in groups])
    return {"places": places, "labels": labels[places]}


def evenly_spaced(numbers: np.ndarray, size: int) -> np.ndarray:
    """Return ``size`` of the numbers, or all if there are no more.

    Examples
    --------
    >>> evenly_spaced(np.arange(10, 20), 3)
    array([10, 14, 19])
    """
    return numbers if len(numbers) <= size else numbers[np.linspace(0, len(numbers) - 1, size).astype(np.int64)]


# ----------------------------------------------------------------------------------------------------- a model of them


class LandmarkModel(NamedTuple):
    """A model on its landmarks alone.

    Attributes
    ----------
    model : ManifoldClustering
        A copy whose ``labels_``, ``memberships_`` and ``graph_`` are those of the landmarks.
    rows : array or CSR matrix of shape (m, d)
        The landmarks, in the view of the model.
    numbers : ndarray of shape (m,)
        The numbers of the landmarks among all rows.
    """

    model: ManifoldClustering
    rows: Array
    numbers: np.ndarray


def on_landmarks(model: ManifoldClustering, max_rows: int | None = None) -> LandmarkModel:
    """Return a model on its landmarks alone, as plots and reports need it.

    They are those that were drawn at random, so that clusters have about their share of the rows.

    Parameters
    ----------
    model : ManifoldClustering
        Fitted to a Dask array.
    max_rows : int, optional
        The largest number of landmarks; of more, some are drawn, always the same ones.
    """
    landmarks = model._landmarks
    if landmarks is None:
        raise InputError(
            "the model was not fitted to a Dask array, so it has no landmarks", "use it as it is", code="no_landmarks"
        )
    chosen = np.flatnonzero(landmarks.is_drawn)
    if max_rows is not None and len(chosen) > check_int(max_rows, "max_rows", minimum=2):
        chosen = np.sort(np.random.RandomState(0).permutation(chosen)[:max_rows])
    sampled, rows = copy(model), take_rows(model._fit_X, chosen)
    sampled._landmarks = None
    sampled._fit_X, sampled.graph_ = rows, model._fit_recipe._build(rows)
    sampled.memberships_ = landmarks.memberships[chosen]
    sampled.labels_ = sampled.memberships_.argmax(axis=1)
    sampled.row_agreement_ = None if landmarks.agreement is None else landmarks.agreement[chosen]
    return LandmarkModel(sampled, rows, landmarks.numbers[chosen])

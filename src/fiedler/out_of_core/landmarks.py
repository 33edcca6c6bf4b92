"""The landmarks of a model that was fitted in blocks, as a model of their own, for reports and plots."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from .._validation import check_int
from ..clustering.manifold import ManifoldClustering
from ..core.backend import Array
from ..core.rows import take_rows
from ..errors import InputError


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
    chosen = np.arange(len(landmarks.numbers))
    if max_rows is not None and len(chosen) > check_int(max_rows, "max_rows", minimum=2):
        chosen = np.sort(np.random.RandomState(0).permutation(len(chosen))[:max_rows])
    sampled, rows = copy(model), take_rows(model._fit_X, chosen)
    sampled._landmarks = None
    sampled._fit_X, sampled.graph_ = rows, model._fit_recipe._build(rows)
    sampled.memberships_ = landmarks.memberships[chosen]
    sampled.labels_ = sampled.memberships_.argmax(axis=1)
    sampled.row_agreement_ = None if landmarks.agreement is None else landmarks.agreement[chosen]
    return LandmarkModel(sampled, rows, landmarks.numbers[chosen])

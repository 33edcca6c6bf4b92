"""The complete graph through landmarks, in memory linear in the rows [nle, section VI-B]."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from .._validation import check_data, check_int
from ..core.backend import Array, asarray_like, namespace
from .affinity import AffinityGraph
from .recipes import FullGraph


class LowRankAffinity(NamedTuple):
    """A dense affinity W = FF' without its diagonal, kept as its factor; what is below zero is noise.

    Attributes
    ----------
    factor : array of shape (n_nodes, m)

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler.graph import LowRankAffinity
    >>> W = LowRankAffinity(np.array([[1.0], [2.0], [3.0]]))
    >>> W.product(np.ones((3, 1))).ravel()  # 1·2 + 1·3, 2·1 + 2·3, 3·1 + 3·2
    array([5., 8., 9.])
    """

    factor: Array  # (n, m)

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return int(self.factor.shape[0])

    def product(self, Q: Array) -> Array:
        """W Q."""
        own = namespace(Q).sum(self.factor * self.factor, axis=1)[:, None]
        return self.factor @ (self.factor.T @ Q) - own * Q


class LandmarkGraph(BaseEstimator):
    """The complete graph through landmarks: W ≈ CA⁺C', C the kernel to m rows and A the kernel among them (Nyström).

    For :class:`NLE`. Memory and products are linear in the number of rows, where :class:`FullGraph` is quadratic.

    Parameters
    ----------
    n_landmarks : int, default=200
        Rows drawn at random.
    weight : {'heat', 'dot', 'polynomial', 'cosine'}, default='heat'
        The kernel.
    bandwidth : float, optional
        Of 'heat'; default the median distance between landmarks.
    degree : int, default=2
        Of 'polynomial'.
    random_state : int, RandomState or None, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import FullGraph, LandmarkGraph
    >>> X = np.random.RandomState(0).normal(size=(300, 2))
    >>> F = LandmarkGraph(100, bandwidth=1.0).build(X).factor
    >>> exact = FullGraph(bandwidth=1.0).build(X).weights.toarray() + np.eye(300)
    >>> bool(np.abs(F @ F.T - exact).mean() < 0.01)
    True
    """

    def __init__(
        self,
        n_landmarks: int = 200,
        weight: str = "heat",
        bandwidth: float | None = None,
        degree: int = 2,
        random_state: Any = 0,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.weight = weight
        self.bandwidth = bandwidth
        self.degree = degree
        self.random_state = random_state

    def build(self, X: Any) -> LowRankAffinity:
        """The factor F of the affinity of the rows of ``X``."""
        X = check_data(X, min_samples=2)
        if sp.issparse(X):
            raise ValueError("LandmarkGraph takes dense rows; reduce sparse ones first, for example by TruncatedSVD")
        if self.weight in ("local", "binary"):
            raise ValueError(f"weight={self.weight!r} is no kernel of two rows alone; use 'heat', 'dot' or 'cosine'")
        size = min(check_int(self.n_landmarks, "n_landmarks", minimum=2), X.shape[0])
        xp = namespace(X)
        chosen = np.sort(check_random_state(self.random_state).permutation(X.shape[0])[:size])
        landmarks = xp.take(X, asarray_like(chosen, X), axis=0)
        kernel = FullGraph(self.weight, bandwidth=self.bandwidth, degree=self.degree)
        among = self._among(kernel, landmarks)
        core = kernel.link(landmarks, landmarks, among)
        values, vectors = xp.linalg.eigh(0.5 * (core + core.T))
        if float(values[-1]) <= 0:
            raise ValueError("the landmarks do not even resemble themselves; check for rows of zeros, or use 'heat'")
        first = int(xp.sum(xp.astype(values <= 1e-6 * float(values[-1]), xp.int64)))
        root = vectors[:, first:] / xp.sqrt(values[first:])[None, :]
        return LowRankAffinity(kernel.link(X, landmarks, among) @ root)

    def _among(self, kernel: FullGraph, landmarks: Array) -> AffinityGraph:
        try:
            return kernel.build(landmarks)
        except ValueError as error:
            if "negative weights" not in str(error):
                raise
            raise ValueError(
                f"weight={self.weight!r} is negative between some landmarks; use weight='heat', or rows without "
                "negative entries"
            ) from error

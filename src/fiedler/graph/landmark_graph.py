"""A low-rank approximation of the complete graph by landmarks, in linear memory [nle, section VI-B]."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .._typing import MatrixLike, RandomState
from .._validation import check_data, check_int, check_seed
from ..core.arrays import Array, asarray_like, namespace
from ..errors import InputError
from .affinity import AffinityGraph
from .recipes import FullGraph


class LowRankAffinity(NamedTuple):
    """A dense affinity W = FF' without its diagonal, stored as its factor; negative weights are approximation errors.

    Attributes
    ----------
    factor : array of shape (n_nodes, m)
        The factor F.

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
        """Return W Q."""
        diagonal = namespace(Q).sum(self.factor * self.factor, axis=1)[:, None]
        return self.factor @ (self.factor.T @ Q) - diagonal * Q


class LandmarkGraph(BaseEstimator):
    """A low-rank approximation of the complete graph, for :class:`NLE`.

    W ≈ CA⁺C' with C the kernel between all rows and m landmarks and A the kernel among the landmarks (Nyström). Memory
    and products are linear in the number of rows; those of :class:`FullGraph` are quadratic.

    Parameters
    ----------
    n_landmarks : int, default=200
        The number of landmarks, which are rows drawn at random.
    weight : {'heat', 'dot', 'polynomial', 'cosine'}, default='heat'
        The kernel; see :mod:`fiedler.graph.kernels` for the formulas.
    bandwidth : float, optional
        The bandwidth of 'heat'; by default the median distance between landmarks.
    degree : int, default=2
        The degree of 'polynomial'.
    random_state : int, RandomState or None, default=0
        Random seed or generator.

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
        weight: Literal["heat", "dot", "polynomial", "cosine"] = "heat",
        bandwidth: float | None = None,
        degree: int = 2,
        random_state: RandomState = 0,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.weight = weight
        self.bandwidth = bandwidth
        self.degree = degree
        self.random_state = random_state

    def build(self, X: MatrixLike) -> LowRankAffinity:
        """Build the affinity of the rows of ``X``.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            The rows.
        """
        return self._build(check_data(X, min_samples=2))

    def _build(self, X: Array) -> LowRankAffinity:
        if sp.issparse(X):
            raise InputError(
                "LandmarkGraph does not accept sparse rows",
                "reduce their dimension first, for example with TruncatedSVD",
                code="sparse_not_supported",
            )
        if isinstance(self.weight, str) and self.weight in ("local", "binary"):
            raise InputError(
                f"weight={self.weight!r} is not a function of two rows",
                "use 'heat', 'dot', 'polynomial' or 'cosine'",
                code="unknown_option",
                parameter="weight",
                value=self.weight,
                options=["heat", "dot", "polynomial", "cosine"],
            )
        size = min(check_int(self.n_landmarks, "n_landmarks", minimum=2), X.shape[0])
        xp = namespace(X)
        chosen = np.sort(check_seed(self.random_state).permutation(X.shape[0])[:size])
        landmarks = xp.take(X, asarray_like(chosen, X), axis=0)
        kernel = FullGraph(self.weight, bandwidth=self.bandwidth, degree=self.degree)
        graph = self._landmark_graph(kernel, landmarks)
        links = kernel._link(X, landmarks, graph)
        A = xp.take(links, asarray_like(chosen, X), axis=0)
        values, vectors = xp.linalg.eigh(0.5 * (A + A.T))
        if float(values[-1]) <= 0:
            raise InputError(
                "the kernel matrix of the landmarks has no positive eigenvalue",
                "check for rows of zeros, or use weight='heat'",
                code="kernel_not_positive",
                parameter="weight",
            )
        first = int(xp.sum(xp.astype(values <= 1e-6 * float(values[-1]), xp.int64)))
        root = vectors[:, first:] / xp.sqrt(values[first:])[None, :]
        return LowRankAffinity(links @ root)

    def _landmark_graph(self, kernel: FullGraph, landmarks: Array) -> AffinityGraph:
        """Build the graph of the landmarks, whose constants the kernel needs."""
        try:
            return kernel._build(landmarks)
        except InputError as error:
            if error.code != "negative_weights":
                raise
            raise InputError(
                f"weight={self.weight!r} is negative between some landmarks",
                "use weight='heat', or rows without negative entries",
                code="negative_weights",
                parameter="weight",
                value=self.weight,
            ) from error

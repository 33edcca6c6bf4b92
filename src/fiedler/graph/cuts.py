"""Graph cuts as one problem: weights W, degrees d, and a mass m for every node.

    J(A_1 .. A_K) = Σ_k cut(A_k, rest) / mass(A_k) = tr(H'LH),  H the indicators with H'MH = I

mass 1 gives the Ratio Cut, mass d the normalised cut. The weights are an operator, so that a sparse graph, a sparse
graph shifted by a constant [nle, Theorem 2] and a dense affinity of low rank (`LandmarkGraph`) all serve; none is
filled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse.linalg as spla

from .._validation import choose
from ..core.backend import Array, asarray_like, namespace, one_hot, to_numpy
from ..core.eigen import LaplacianKind, largest_eigenvalue, smallest_eigenpairs
from ..core.multiplicative import positive_part
from ..core.sparse import csr_parts, densify_if_full, matmul, row_sums
from .affinity import AffinityGraph
from .landmarks import LowRankAffinity
from .pairs import split_by_sign
from .repulsion import repelled_eigenpairs


class CutTerms(NamedTuple):
    """Of every cluster its cut and its mass, and the weights s_ik from every node to every cluster."""

    cut: Array
    mass: Array
    toward: Array

    def value(self) -> float:
        """J; infinite if a cluster is empty, which would push it below any bound."""
        xp = namespace(self.cut)
        if not bool(xp.all(self.mass > 0)):  # no node is without mass
            return float("inf")
        return float(xp.sum(self.cut / self.mass))


class CutProblem(NamedTuple):
    """What a cut and its relaxations need of a graph."""

    attract: Callable[[Array], Array]  # W⁺Q, of an (n, k) array
    repel: Callable[[Array], Array] | None  # W⁻Q
    degrees: Array  # (n,), row sums of W without its diagonal
    mass: Array  # (n,)
    approximate: bool = False  # whether W is nonnegative only up to an error
    repelling: bool = False  # whether negative weights are cannot-links

    def product(self, Q: Array) -> Array:
        """W Q."""
        return self.attract(Q) if self.repel is None else self.attract(Q) - self.repel(Q)

    def terms(self, labels: Array, k: int) -> CutTerms:
        """What J and its changes are made of."""
        H = one_hot(labels, k, self.degrees)
        toward = self.product(H)
        xp = namespace(H)
        cut = H.T @ self.degrees - xp.sum(H * toward, axis=0)
        return CutTerms(cut, H.T @ self.mass, toward)

    def value(self, labels: Array, k: int) -> float:
        """J of hard labels."""
        return self.terms(labels, k).value()

    def top(self, rng: np.random.RandomState) -> float:
        """The largest eigenvalue of M^-½ (D - W) M^-½."""
        root = self.inverse_root
        diagonal = (self.degrees * root**2)[:, None]
        start = asarray_like(rng.standard_normal((self.degrees.shape[0], 1)), root, dtype=root.dtype)
        return largest_eigenvalue(lambda v: diagonal * v - root[:, None] * self.product(root[:, None] * v), start)

    @property
    def inverse_root(self) -> Array:
        """M^-½, as a vector."""
        return 1 / namespace(self.mass).sqrt(self.mass)


CUTS = {"ratio": False, "ncut": True}  # whether a node counts by its degree
SIGNS = ("split", "shift")


def cut_problem(
    graph: AffinityGraph | LowRankAffinity,
    cut: str,
    signed: str = "split",
    sizes: Array | None = None,
    *,
    repelling: bool = False,
) -> CutProblem:
    """The Ratio Cut or normalised cut of a graph.

    Parameters
    ----------
    graph : AffinityGraph or LowRankAffinity
    cut : {'ratio', 'ncut'}
    signed : {'split', 'shift'}, default='split'
        How negative weights are taken: W = W⁺ - W⁻, with degrees Σ_j w_ij; or W + c for all pairs, with the smallest
        weight at zero, which leaves the eigenvectors of D - W as they are. [nle, section V]
    sizes : array of shape (n_nodes,), optional
        How many points every node stands for; default one.
    repelling : bool, default=False
        Negative weights are cannot-links: they count against a cluster that holds both ends, J = Σ_k (cut of W⁺ + W⁻
        within) / mass, and not in favour of one that holds a single end. As mere negative weights, d = Σ_j w_ij, they
        would make a cluster of the one node that repels most the best of all.
    """
    by_degree = choose(CUTS, cut, option="cut")
    choose(dict.fromkeys(SIGNS), signed, option="signed")
    attract, repel, degrees = _operators(graph, signed)
    if repelling and repel is not None:
        degrees = attract(namespace(degrees).ones_like(degrees)[:, None])[:, 0]
    xp, low_rank = namespace(degrees), isinstance(graph, LowRankAffinity)
    if not by_degree:
        points = xp.ones_like(degrees) if sizes is None else asarray_like(to_numpy(sizes), degrees, dtype=degrees.dtype)
        return CutProblem(attract, repel, degrees, points, low_rank, repelling)
    if bool(xp.any(degrees < 0)):
        raise ValueError("the normalised cut asks for nonnegative degrees; use cut='ratio', or signed='shift'")
    loops = getattr(graph, "loops", None)
    volumes = degrees if loops is None else degrees + asarray_like(to_numpy(loops), degrees, dtype=degrees.dtype)
    least = max(1e-6 * float(xp.mean(volumes)), 1e-300)  # an isolated node has next to no mass, but some
    return CutProblem(attract, repel, degrees, xp.where(volumes > least, volumes, least), low_rank, repelling)


def _operators(graph: Any, signed: str) -> tuple[Callable[[Array], Array], Callable[[Array], Array] | None, Array]:
    if isinstance(graph, LowRankAffinity):
        if signed == "shift":
            raise ValueError("the weights of LandmarkGraph are never seen one by one, so they cannot be shifted")
        ones = namespace(graph.factor).ones_like(graph.factor[:, :1])
        return graph.product, None, positive_part(graph.product(ones))[:, 0]
    W, n = graph.weights, graph.n_nodes
    data = csr_parts(W)[0]
    degrees = row_sums(W)
    if signed == "shift":
        full = densify_if_full(W)
        complete = data.shape[0] == n * (n - 1)
        lightest = float(namespace(data).min(data)) if data.shape[0] else 0.0
        shift = -lightest if complete else max(-lightest, 0.0)
        total = lambda Q: namespace(Q).sum(Q, axis=0)[None, :]  # noqa: E731
        return lambda Q: matmul(full, Q) + shift * (total(Q) - Q), None, degrees + shift * (n - 1)
    if not graph.has_negative_weights:
        full = densify_if_full(W)
        return lambda Q: matmul(full, Q), None, degrees
    positive, negative = (densify_if_full(side.weights) for side in split_by_sign(graph))
    return lambda Q: matmul(positive, Q), lambda Q: matmul(negative, Q), degrees


# ------------------------------------------------------------------------------------------- eigenvectors of a problem


def cut_eigenvectors(
    graph: AffinityGraph | LowRankAffinity,
    problem: CutProblem,
    k: int,
    cut: str,
    rng: np.random.RandomState,
    signed: str = "split",
) -> Array:
    """The k smallest eigenvectors of L for the Ratio Cut, of the random walk's Laplacian for the normalised cut."""
    own = signed == "split" or cut == "ratio"  # a shift leaves those of L as they are
    kind: LaplacianKind = "random_walk" if choose(CUTS, cut, option="cut") else "combinatorial"
    if isinstance(graph, AffinityGraph) and not graph.has_negative_weights and own:
        return smallest_eigenpairs(graph, k, kind=kind, random_state=rng).vectors
    if isinstance(graph, AffinityGraph) and problem.repelling:  # those of D⁺ - W would sit on single cannot-links
        return repelled_eigenpairs(graph, k, kind=kind, random_state=rng).vectors
    root = to_numpy(problem.inverse_root).astype(np.float64)[:, None]
    diagonal = to_numpy(problem.degrees).astype(np.float64)[:, None] * root**2
    reference = problem.degrees

    def product(v: np.ndarray) -> np.ndarray:
        v = v.reshape(len(root), -1)
        inner = to_numpy(problem.product(asarray_like(root * v, reference, dtype=reference.dtype)))
        return diagonal * v - root * inner

    n = len(root)
    operator = spla.LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
    vectors = smallest_eigenpairs(operator if n > 512 else product(np.eye(n)), k, random_state=rng).vectors
    return asarray_like(root * to_numpy(vectors), reference, dtype=reference.dtype)


# ------------------------------------------------------------------------------------------------------------- polish


def polish(problem: CutProblem, labels: Array, k: int, *, max_rounds: int = 200) -> tuple[Array, float]:
    """Single nodes moved where J falls, until no single move lowers it or ``max_rounds`` are done; never worse.

    Every round computes the exact gain of every move from the current partition, makes the best moves together and
    keeps them if J has fallen; if not, the better half of them, down to the single best move, whose gain is exact.
    """
    xp = namespace(problem.degrees)
    labels, terms = xp.astype(labels, xp.int64), problem.terms(labels, k)
    value = terms.value()
    if k == 1 or value == float("inf"):
        return labels, value
    for _ in range(max_rounds):
        gain, target = _best_moves(problem, labels, terms, k)
        wanted = int(xp.sum(xp.astype(gain > 1e-9 * max(abs(value), 1e-300) / k, xp.int64)))
        if wanted == 0:
            break
        order = xp.argsort(gain, descending=True, stable=True)
        rank = xp.argsort(order, stable=True)
        while wanted:
            moved = xp.where(rank < wanted, target, labels)
            found = problem.terms(moved, k)
            if found.value() < value:
                labels, terms, value = moved, found, found.value()
                break
            wanted //= 2
        if not wanted:
            break
    return labels, value


def _best_moves(problem: CutProblem, labels: Array, terms: CutTerms, k: int) -> tuple[Array, Array]:
    """For every node how much J falls by its best move, and where to; nothing for the last node of a cluster."""
    cut, mass, toward = terms
    xp = namespace(cut)
    own = one_hot(labels, k, problem.degrees)
    d, m = problem.degrees[:, None], problem.mass[:, None]
    sizes = xp.sum(own, axis=0)
    joined = (cut[None, :] + d - 2 * toward) / (mass[None, :] + m) - (cut / mass)[None, :]
    left_mass = xp.sum(own * mass[None, :], axis=1)[:, None] - m
    alone = xp.sum(own * sizes[None, :], axis=1)[:, None] < 1.5
    own_cut, own_value = (xp.sum(own * part[None, :], axis=1)[:, None] for part in (cut, cut / mass))
    own_toward = xp.sum(own * toward, axis=1)[:, None]
    left = (own_cut - d + 2 * own_toward) / xp.where(alone, 1, left_mass) - own_value
    change = xp.where((own > 0) | alone, float("inf"), joined + left)
    return -xp.min(change, axis=1), xp.argmin(change, axis=1)

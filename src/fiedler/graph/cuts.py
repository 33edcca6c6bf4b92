"""Graph cuts as one problem: weights W, degrees d, and a mass m for every node.

    J(A_1 .. A_K) = Σ_k cut(A_k, rest) / mass(A_k) = tr(H'LH),  H the indicators with H'MH = I

mass 1 gives the Ratio Cut, mass d the normalised cut. The weights are an operator: a sparse graph, a sparse graph
shifted by a constant [nle, Theorem 2], or a dense affinity of low rank (`LandmarkGraph`), none of which is densified.

`ratio_cut`, `normalized_cut` and `min_max_cut` measure hard labels on a graph; `CutProblem` is what the search for
labels works on. The min-max cut divides by the weights within the clusters, which are not sums over nodes, so that it
is no such problem; its relaxation has the eigenvectors of the normalised cut.

`average_association` measures the weight inside clusters instead, Σ_k W(A_k, A_k) / |A_k| = tr(H'WH), with the leading
eigenvectors of W as its relaxation. It equals Σ_k vol(A_k) / |A_k| minus the Ratio Cut, so the two agree if all degrees
are equal. [lpi, Eq. 9] states the problem of the Ratio Cut, Ly = λy, for both.

Of a graph with cannot-links, repelling edges are in the denominator [Cucuringu et al. 2016]:

    L⁺ v = λ (M + L⁻) v,    L⁺, L⁻ the Laplacians of the attracting and of the repelling edges

A vector is good if it varies little over the attracting edges relative to its variation over the repelling ones and to
the masses M (degrees for the normalised cut, their mean for the Ratio Cut). Without repelling edges this is the problem
of the random walk. The signed Laplacian requires opposite values instead of different ones, which suits two clusters
only.

References
----------
M. Cucuringu, I. Koutis, S. Chawla, G. Miller, R. Peng, "Simple and scalable constrained clustering: a generalized
spectral method", AISTATS 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse.linalg as spla
from scipy.linalg import eigh

from .._records import EigenResult
from .._typing import LabelsLike, MatrixLike
from .._validation import choose, one_of
from ..core.arrays import Array, asarray_like, namespace, normalize_rows, one_hot, positive_part, to_numpy
from ..core.eigen import DENSE_UP_TO, LaplacianKind, largest_eigenvalue, smallest_eigenpairs
from ..core.kmeans import kmeans
from ..core.sparse import (
    add_diagonal,
    csr_parts,
    densify_if_full,
    matmul,
    row_indices,
    row_sums,
    sum_entries,
    to_scipy,
    with_data,
)
from ..errors import InputError
from .affinity import AffinityGraph
from .constraints import split_by_sign
from .kernels import LowRankAffinity
from .labels import check_node_labels, consecutive

MATRIX_SOLVERS = ("arpack", "shift_invert")  # need a matrix, or miss a null space of several dimensions
MAX_CANNOT_LINK_ROWS = 4000  # rows with a repelling edge, of which a dense matrix is decomposed
MASS_IS_DEGREE = {"ratio": False, "ncut": True}  # whether the mass of a node is its degree

# ------------------------------------------------------------------------------------------------ cuts of hard labels


def sum_of_cut_ratios(cut: Array, mass: Array) -> float:
    """Return J = Σ_k cut(A_k, rest) / mass(A_k); infinite if a cluster has no mass.

    An empty cluster would otherwise lower J below any bound. Every normalised or Ratio Cut of the library is this sum.
    """
    xp = namespace(cut)
    return float(xp.sum(cut / mass)) if bool(xp.all(mass > 0)) else float("inf")


def ratio_cut(graph: AffinityGraph | MatrixLike, labels: LabelsLike) -> float:
    """Return the Ratio Cut Σ_k cut(A_k, rest) / ``|A_k|`` = tr(H'LH) of a partition. [nle, Eqs 4-5]

    On a signed graph the cut of a cluster is the sum of the absolute weights that leave it plus twice that of the
    negative ones inside, as measured by the signed Laplacian.

    Parameters
    ----------
    graph : AffinityGraph or matrix
        The graph.
    labels : array-like of shape (n_nodes,)
        The cluster of each node.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> ratio_cut(path, [0, 1, 1])  # 1/1 + 1/2
    1.5
    """
    cuts, sizes, _ = _cluster_cuts(graph, labels)
    return sum_of_cut_ratios(cuts, sizes)


def normalized_cut(graph: AffinityGraph | MatrixLike, labels: LabelsLike) -> float:
    """Return the normalised cut Σ_k cut(A_k, rest) / vol(A_k) of a partition; a cluster without edges counts 0.

    Parameters
    ----------
    graph : AffinityGraph or matrix
        The graph.
    labels : array-like of shape (n_nodes,)
        The cluster of each node.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> normalized_cut(path, [0, 1, 1])  # 1/1 + 1/5
    1.2
    """
    cuts, _, volumes = _cluster_cuts(graph, labels)
    return sum_of_cut_ratios(cuts[volumes > 0], volumes[volumes > 0])


def min_max_cut(graph: AffinityGraph | MatrixLike, labels: LabelsLike) -> float:
    """Return the min-max cut Σ_k cut(A_k, rest) / w(A_k, A_k) of a partition. [Ding et al. 2001]

    w(A, A) = vol(A) - cut(A, rest) counts each edge within a cluster twice, as the volume does. The cut is infinite if
    a cluster has no edge inside; the normalised cut counts 1 for it.

    Parameters
    ----------
    graph : AffinityGraph or matrix
        A graph without negative weights.
    labels : array-like of shape (n_nodes,)
        The cluster of each node.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 3], [0, 0, 3, 0]])
    >>> round(min_max_cut(path, [0, 0, 1, 1]), 4)  # 1/4 + 1/6
    0.4167
    """
    graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
    if graph.has_negative_weights:
        problem = "the min-max cut needs non-negative weights, but the graph has negative ones"
        hint = "use ratio_cut, which measures signed graphs"
        raise InputError(problem, hint, code="negative_weights", parameter="graph")
    cuts, _, volumes = _cluster_cuts(graph, labels)
    within = volumes - cuts
    rounding = 1e-12 * volumes  # of a difference that is zero
    return sum_of_cut_ratios(cuts, np.where(within > rounding, within, 0.0))


def average_association(graph: AffinityGraph | MatrixLike, labels: LabelsLike) -> float:
    """Return the average association Σ_k W(A_k, A_k) / ``|A_k|`` = tr(H'WH) of a partition, self-loops included.

    Large values are good. With equal degrees d it is K d minus the Ratio Cut. [lpi, Eq. 9]

    Parameters
    ----------
    graph : AffinityGraph or matrix
        The graph.
    labels : array-like of shape (n_nodes,)
        The cluster of each node.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> average_association(path, [0, 1, 1])  # 0/1 + 4/2
    2.0
    """
    graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
    codes = consecutive(check_node_labels(labels, graph.n_nodes))
    data, columns, _ = csr_parts(graph.weights)
    data, columns, rows = (to_numpy(part) for part in (data, columns, row_indices(graph.weights)))
    inside = codes[rows] == codes[columns]
    weight = np.bincount(codes[rows[inside]], data[inside], minlength=int(codes.max()) + 1)
    if graph.loops is not None:
        weight = weight + np.bincount(codes, to_numpy(graph.loops))
    return float(np.sum(weight / np.bincount(codes)))


def _cluster_cuts(graph: AffinityGraph | MatrixLike, labels: LabelsLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for every cluster, the weight of the edges that leave it, its size and its volume (sum of degrees)."""
    graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
    codes = consecutive(check_node_labels(labels, graph.n_nodes))
    sizes, volumes = np.bincount(codes), np.bincount(codes, to_numpy(graph.degrees))
    data, columns, _ = csr_parts(graph.weights)
    xp, placed = namespace(data), asarray_like(codes, data)
    own = xp.take(placed, row_indices(graph.weights))
    leaving = own != xp.take(placed, columns)
    # |w| of an edge that leaves the cluster, and |w| - w = 2|w| of a negative one inside
    entries = xp.nonzero(leaving | (data < 0) if graph.has_negative_weights else leaving)[0]
    weights = xp.where(xp.take(leaving, entries), 1, 2) * xp.abs(xp.take(data, entries))
    clusters = xp.take(own, entries)
    cuts = sum_entries(xp.zeros_like(clusters), clusters, xp.astype(weights, xp.float64), (1, len(sizes)))
    return to_numpy(cuts)[0, :], sizes, volumes


# ------------------------------------------------------------------------------------------------------ cut problems


class CutTerms(NamedTuple):
    """The cut and the mass of every cluster, and the weights s_ik from every node to every cluster."""

    cut: Array
    mass: Array
    weight_to_clusters: Array

    def value(self) -> float:
        """Return J; infinite if a cluster is empty (every node has a mass)."""
        return sum_of_cut_ratios(self.cut, self.mass)


class CutProblem(NamedTuple):
    """The operators and masses of a graph from which a cut and its relaxations are computed."""

    attract: Callable[[Array], Array]  # W⁺Q, of an (n, k) array
    repel: Callable[[Array], Array] | None  # W⁻Q
    degrees: Array  # (n,), row sums of W without its diagonal
    mass: Array  # (n,)
    approximate: bool = False  # whether W is non-negative only up to an error
    repelling: bool = False  # whether negative weights are cannot-links

    def product(self, Q: Array) -> Array:
        """Return W Q."""
        return self.attract(Q) if self.repel is None else self.attract(Q) - self.repel(Q)

    def terms(self, labels: Array, k: int) -> CutTerms:
        """Return the terms from which J and its changes are computed."""
        H = one_hot(labels, k, self.degrees)
        weight_to_clusters = self.product(H)
        xp = namespace(H)
        cut = H.T @ self.degrees - xp.sum(H * weight_to_clusters, axis=0)
        return CutTerms(cut, H.T @ self.mass, weight_to_clusters)

    def value(self, labels: Array, k: int) -> float:
        """Return J of hard labels."""
        return self.terms(labels, k).value()

    def largest_eigenvalue(self, rng: np.random.RandomState) -> float:
        """Return the largest eigenvalue of M^-½ (D - W) M^-½."""
        root = self.inverse_root
        diagonal = (self.degrees * root**2)[:, None]
        start = asarray_like(rng.standard_normal((self.degrees.shape[0], 1)), root, dtype=root.dtype)
        return largest_eigenvalue(lambda v: diagonal * v - root[:, None] * self.product(root[:, None] * v), start)

    @property
    def inverse_root(self) -> Array:
        """M^-½, as a vector."""
        return 1 / namespace(self.mass).sqrt(self.mass)


def cut_problem(
    graph: AffinityGraph | LowRankAffinity,
    cut: str,
    signed: str = "split",
    sizes: Array | None = None,
    *,
    repelling: bool = False,
) -> CutProblem:
    """Return the Ratio Cut or normalised cut of a graph as a problem.

    Negative weights are split off, W = W⁺ - W⁻, with degrees Σ_j w_ij; or all weights are shifted ('shift'), W + c for
    all pairs with the smallest weight zero, which does not change the eigenvectors of D - W. [nle, section V] If they
    are cannot-links (``repelling``) they count against a cluster that contains both ends, J = Σ_k (cut of W⁺ + W⁻
    within) / mass, and not in favour of one that contains a single end. With d = Σ_j w_ij instead, the best cluster of
    all would be the single node with the most cannot-links. ``sizes`` are the numbers of points that nodes represent.
    """
    by_degree = choose(MASS_IS_DEGREE, cut, option="cut")
    one_of(("split", "shift"))(signed, "signed")
    attract, repel, degrees = _operators(graph, signed)
    if repelling and repel is not None:
        degrees = attract(namespace(degrees).ones_like(degrees)[:, None])[:, 0]
    xp, low_rank = namespace(degrees), isinstance(graph, LowRankAffinity)
    if not by_degree:
        points = xp.ones_like(degrees) if sizes is None else asarray_like(to_numpy(sizes), degrees, dtype=degrees.dtype)
        return CutProblem(attract, repel, degrees, points, low_rank, repelling)
    if bool(xp.any(degrees < 0)):
        problem = "the normalised cut needs non-negative degrees"
        hint = "use cut='ratio', or signed='shift'"
        raise InputError(problem, hint, code="negative_degrees", parameter="cut", value=cut)
    loops = getattr(graph, "loops", None)
    volumes = degrees if loops is None else degrees + asarray_like(to_numpy(loops), degrees, dtype=degrees.dtype)
    min_mass = max(1e-6 * float(xp.mean(volumes)), 1e-300)  # the mass of an isolated node is small but not zero
    return CutProblem(attract, repel, degrees, xp.where(volumes > min_mass, volumes, min_mass), low_rank, repelling)


def _operators(graph: Any, signed: str) -> tuple[Callable[[Array], Array], Callable[[Array], Array] | None, Array]:
    if isinstance(graph, LowRankAffinity):
        if signed == "shift":
            problem = "the weights of LandmarkGraph are not computed one by one, so they cannot be shifted"
            hint = "use signed='split'"
            raise InputError(problem, hint, code="shift_not_supported", parameter="signed", value=signed)
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


# ------------------------------------------------------------------------------------------ eigenvectors of a problem


def cut_eigenvectors(
    graph: AffinityGraph | LowRankAffinity,
    problem: CutProblem,
    k: int,
    cut: str,
    rng: np.random.RandomState,
    signed: str = "split",
) -> Array:
    """Return the k smallest eigenvectors of D - W for the Ratio Cut, of I - D⁻¹W for the normalised cut."""
    unshifted = signed == "split" or cut == "ratio"  # a shift does not change the eigenvectors of L
    kind: LaplacianKind = "random_walk" if choose(MASS_IS_DEGREE, cut, option="cut") else "combinatorial"
    if isinstance(graph, AffinityGraph) and not graph.has_negative_weights and unshifted:
        return smallest_eigenpairs(graph, k, kind=kind, random_state=rng).vectors
    if isinstance(graph, AffinityGraph) and problem.repelling:  # those of D⁺ - W would concentrate on cannot-links
        return cannot_link_eigenpairs(graph, k, kind=kind, random_state=rng).vectors
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


def cannot_link_eigenpairs(graph: AffinityGraph, k: int, *, kind: str, **options: Any) -> EigenResult:
    """Return the ``k`` smallest eigenpairs of L⁺ v = λ (M + L⁻) v; M is D for 'random_walk', else the mean degree.

    With N = M^-½ L⁺ M^-½ and R = (I + M^-½ L⁻ M^-½)^-½, which differs from I only where edges repel, the problem is RNR
    u = λ u and v = M^-½ R u.
    """
    if options.get("method") in MATRIX_SOLVERS:
        problem = f"eigen_solver={options['method']!r} needs a matrix, but with cannot-links there is only an operator"
        hint = "use 'auto'"
        raise InputError(problem, hint, code="solver_needs_matrix", parameter="eigen_solver", value=options["method"])
    attract, repel = (to_scipy(side.laplacian()).astype(np.float64) for side in split_by_sign(graph))
    degrees = attract.diagonal()
    mean = float(degrees.mean()) or 1.0
    mass = np.where(degrees > 0, degrees, mean) if kind == "random_walk" else np.full_like(degrees, mean)
    root = 1 / np.sqrt(mass)[:, None]
    rows = np.flatnonzero(repel.diagonal())
    if len(rows) > MAX_CANNOT_LINK_ROWS:
        problem = f"{len(rows)} rows have cannot-links"
        hint = f"use cannot-links of at most {MAX_CANNOT_LINK_ROWS} rows"
        raise InputError(problem, hint, code="too_many_rows", n_rows=len(rows), max_rows=MAX_CANNOT_LINK_ROWS)
    E = root[rows] * repel[rows][:, rows].toarray() * root[rows].T
    values, vectors = eigh(0.5 * (E + E.T)) if len(rows) else (np.empty(0), E)
    R_rows = (vectors / np.sqrt(1 + np.maximum(values, 0))) @ vectors.T  # (I + E)^-½

    def apply_R(v: np.ndarray) -> np.ndarray:
        v = v.copy()
        v[rows] = R_rows @ v[rows]
        return v

    def product(v: np.ndarray) -> np.ndarray:
        v = v.reshape(len(root), -1)
        return apply_R(root * (attract @ (root * apply_R(v))))

    n = len(root)
    operator = spla.LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
    result = smallest_eigenpairs(operator if n > DENSE_UP_TO else product(np.eye(n)), k, **options)
    like_graph = lambda part: asarray_like(to_numpy(part), graph.degrees, dtype=graph.degrees.dtype)  # noqa: E731
    return replace(
        result,
        vectors=like_graph(root * apply_R(to_numpy(result.vectors))),
        values=like_graph(result.values),
        residuals=like_graph(result.residuals),
    )


def association_eigenpairs(graph: AffinityGraph, k: int, **options: Any) -> EigenResult:
    """Return the ``k`` smallest eigenpairs of -W, the relaxation of the average association; see `smallest_eigenpairs`.

    They maximise tr(H'WH) over all H with H'H = I. Self-loops are the diagonal of W.
    """
    if not isinstance(graph, AffinityGraph):
        problem = "the average association needs a graph with edges, and a LandmarkGraph has none"
        raise InputError(problem, "use cut='ncut', or KNNGraph()", code="not_a_graph", parameter="cut")
    negated = with_data(graph.weights, -csr_parts(graph.weights)[0])
    return smallest_eigenpairs(negated if graph.loops is None else add_diagonal(negated, -graph.loops), k, **options)


# ------------------------------------------------------------------------------------------------------------- polish


def polish(problem: CutProblem, labels: Array, k: int, *, max_rounds: int = 200) -> tuple[Array, float]:
    """Move single nodes while this lowers J, for at most ``max_rounds``; return labels that are never worse, and J.

    Every round computes the exact gain of every single move, makes the best moves together and keeps them if J has
    fallen; if not, it tries the better half of them, down to the single best move, whose gain is exact.
    """
    xp = namespace(problem.degrees)
    labels, terms = xp.astype(labels, xp.int64), problem.terms(labels, k)
    value = terms.value()
    if k == 1 or value == float("inf"):
        return labels, value
    for _ in range(max_rounds):
        gain, target = _best_moves(problem, labels, terms, k)
        n_moves = int(xp.sum(xp.astype(gain > 1e-9 * max(abs(value), 1e-300) / k, xp.int64)))
        if n_moves == 0:
            break
        order = xp.argsort(gain, descending=True, stable=True)
        rank = xp.argsort(order, stable=True)
        while n_moves:
            moved = xp.where(rank < n_moves, target, labels)
            moved_terms = problem.terms(moved, k)
            if moved_terms.value() < value:
                labels, terms, value = moved, moved_terms, moved_terms.value()
                break
            n_moves //= 2
        if not n_moves:
            break
    return labels, value


def _best_moves(problem: CutProblem, labels: Array, terms: CutTerms, k: int) -> tuple[Array, Array]:
    """Return how much the best move of every node lowers J, and its target; the last node of a cluster stays."""
    cut, mass, weight_to_clusters = terms
    xp = namespace(cut)
    H = one_hot(labels, k, problem.degrees)
    d, m = problem.degrees[:, None], problem.mass[:, None]
    current = lambda of_cluster: xp.sum(H * of_cluster[None, :], axis=1)[:, None]  # noqa: E731  of each node's cluster
    joined = (cut[None, :] + d - 2 * weight_to_clusters) / (mass[None, :] + m) - (cut / mass)[None, :]
    left_mass = current(mass) - m
    is_last = current(xp.sum(H, axis=0)) < 1.5
    current_weight = xp.sum(H * weight_to_clusters, axis=1)[:, None]
    left = (current(cut) - d + 2 * current_weight) / xp.where(is_last, 1, left_mass) - current(cut / mass)
    change = xp.where((H > 0) | is_last, float("inf"), joined + left)
    return -xp.min(change, axis=1), xp.argmin(change, axis=1)


def spectral_labels(graph: AffinityGraph, n_clusters: int, *, random_state: np.random.RandomState) -> Array:
    """Cluster the nodes as Ng, Jordan & Weiss do: k-means (ten starts) on unit rows of the first eigenvectors."""
    pairs = smallest_eigenpairs(graph, n_clusters, kind="random_walk", random_state=random_state)
    return kmeans(normalize_rows(pairs.vectors), n_clusters, random_state=random_state).labels

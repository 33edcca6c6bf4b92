"""Pairwise constraints: must-links between rows of the same cluster, cannot-links between rows of different ones.

Must-links are transitive, and a cannot-link applies to all rows of the groups that they form. Pairs thus imply further
pairs (`PairwiseConstraints.closure`) and may contradict each other, which is an error that names the pairs.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components
from sklearn.utils.validation import _num_samples

from .._files import atomic_write, check_path
from .._typing import LabelsLike, MatrixLike, RandomState
from .._validation import check_bool, check_fraction, check_int, check_labels, check_nonnegative, check_seed
from ..core.arrays import Array, asarray_like, to_numpy
from ..core.sparse import csr_parts, filter_entries, from_scipy_like, to_scipy, with_data
from ..errors import DataNotFoundError, FileFormatError, InputError, InputTypeError, shown
from .affinity import AffinityGraph
from .labels import check_node_labels, known_labels, mark_unknown

MAX_ENUMERATED_PAIRS = 10_000_000  # pairs that are written out one by one: 160 MB
MAX_CONFLICTS_SHOWN = 5  # conflicts listed in an error
KINDS: tuple[Literal["must-link"], Literal["cannot-link"]] = ("must-link", "cannot-link")  # as in a pairs file


class PairwiseConstraints:
    """Pairs of rows that must be in one cluster, and pairs that must not.

    This is not an array on purpose: scikit-learn's cross-validation slices arrays by rows, whereas pairs contain row
    numbers. In a search pass ``constraints=pairs.per_row()``, which can be sliced, and see :class:`ConstrainedKFold`.

    Parameters
    ----------
    must_link, cannot_link : array-like of shape (n_pairs, 2), default=()
        Row numbers. The order within a pair and repeated pairs do not matter.
    n_samples : int
        The number of rows of the data to which the pairs refer.
    strength : float, default=1.0
        The weight of the pairs of either kind at a row relative to its neighbours, in models that use them as edges.
    hard : bool, default=False
        Whether must-linked rows are always kept in one cluster.

    Attributes
    ----------
    must_link, cannot_link : ndarray of shape (n_pairs, 2)
        Each pair once, with the smaller number first, in ascending order.
    groups : ndarray of shape (n_samples,)
        The group of each row under the must-links; a row without must-links is its own group.

    Examples
    --------
    >>> pairs = PairwiseConstraints(must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3)], n_samples=5)
    >>> pairs
    PairwiseConstraints(2 must-links, 1 cannot-links, n_samples=5)
    >>> pairs.closure().cannot_link.tolist()
    [[0, 3], [1, 3], [2, 3]]
    >>> PairwiseConstraints([(0, 1), (1, 2)], [(0, 2)], n_samples=3)
    Traceback (most recent call last):
        ...
    fiedler.errors.InputError: 1 cannot-link(s) contradict the must-links: (0, 2), joined by 0-1-2; remove one of ...
    """

    def __init__(
        self,
        must_link: MatrixLike = (),
        cannot_link: MatrixLike = (),
        n_samples: int | None = None,
        *,
        strength: float = 1.0,
        hard: bool = False,
    ) -> None:
        if n_samples is None:
            problem = "n_samples is missing"
            hint = "pass the number of rows of the data to which the pairs refer"
            raise InputError(problem, hint, code="missing_parameter", parameter="n_samples")
        self.n_samples = check_int(n_samples, "n_samples")
        self.must_link = _as_pairs(must_link, KINDS[0], self.n_samples)
        self.cannot_link = _as_pairs(cannot_link, KINDS[1], self.n_samples)
        self.strength, self.hard = check_nonnegative(strength, "strength"), check_bool(hard, "hard")
        self._check_conflicts()

    def _check_conflicts(self) -> None:
        """Raise an error if a cannot-link joins two rows of one group, with the must-links between them."""
        if not len(self.cannot_link):
            return
        # Only on the rows that occur in pairs: the n_samples of a file may be any number.
        rows, places = np.unique(np.concatenate([self.must_link, self.cannot_link]), return_inverse=True)
        must, cannot = np.split(places.reshape(-1, 2), [len(self.must_link)])
        graph = sp.csr_array((np.ones(len(must), dtype=np.int8), tuple(must.T)), shape=(len(rows),) * 2)
        groups = connected_components(graph, directed=False)[1]
        wrong = cannot[groups[cannot[:, 0]] == groups[cannot[:, 1]]].tolist()
        if not wrong:
            return
        conflicts = []
        for start, end in wrong[:MAX_CONFLICTS_SHOWN]:
            predecessors, chain = breadth_first_order(graph, start, directed=False)[1], [end]
            while chain[-1] != start:
                chain.append(int(predecessors[chain[-1]]))
            names = rows[chain[::-1]].tolist()
            conflicts.append(f"{(names[0], names[-1])}, joined by {'-'.join(map(str, names))}")
        more = f"; and {len(wrong) - MAX_CONFLICTS_SHOWN} more" if len(wrong) > MAX_CONFLICTS_SHOWN else ""
        problem = f"{len(wrong)} cannot-link(s) contradict the must-links: {'; '.join(conflicts)}{more}"
        raise InputError(problem, "remove one of the pairs involved", code="contradicting_pairs", n_pairs=len(wrong))

    # ---------------------------------------------------------------------------------------------- construction, files

    @classmethod
    def from_labels(
        cls,
        y: LabelsLike,
        *,
        rate: float | None = None,
        max_pairs: int | None = None,
        random_state: RandomState = None,
        strength: float = 1.0,
        hard: bool = False,
    ) -> PairwiseConstraints:
        """Return all pairs among labelled rows.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels, with the number -1, None or NaN for unknown.
        rate : float, optional
            The fraction of the labelled rows to use, drawn class by class, at least one of each [learned_laplacian,
            section IV]; by default all.
        max_pairs : int, optional
            The maximum number of pairs of either kind, drawn at random. The number of pairs grows with the square of
            the number of labels.
        random_state : int, RandomState or None, default=None
            Random seed or generator.
        strength, hard
            As in the class.
        """
        y = check_labels(mark_unknown(y), "y")
        n = len(y)
        known, labels = known_labels(y, n)
        rows, rng = np.flatnonzero(known), check_seed(random_state)
        if rate is not None:
            chosen = _sample_each_class(labels, check_fraction(rate, "rate"), rng)
            rows, labels = rows[chosen], labels[chosen]
        if (n_pairs := len(rows) * (len(rows) - 1) // 2) > MAX_ENUMERATED_PAIRS:
            if max_pairs is None:
                problem = f"{len(rows)} labelled rows make {n_pairs:,} pairs"
                raise InputError(problem, "set max_pairs or rate", code="too_many_pairs", n_pairs=n_pairs)
            chosen = rng.permutation(len(rows))[: int((2 * MAX_ENUMERATED_PAIRS) ** 0.5)]
            rows, labels = rows[chosen], labels[chosen]
        first, second = np.triu_indices(len(rows), 1)
        same = labels[first] == labels[second]
        pairs = np.column_stack([rows[first], rows[second]])
        limit = len(pairs) if max_pairs is None else check_int(max_pairs, "max_pairs")
        must, cannot = (
            kind if len(kind) <= limit else kind[rng.permutation(len(kind))[:limit]]
            for kind in (pairs[same], pairs[~same])
        )
        return cls(must, cannot, n, strength=strength, hard=hard)

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        n_samples: int,
        *,
        names: Sequence[str] | None = None,
        strength: float = 1.0,
        hard: bool = False,
    ) -> PairwiseConstraints:
        """Read pairs from a file with the columns first, second and kind ('must-link' or 'cannot-link').

        Parameters
        ----------
        path : str or path
            The file, comma-separated, in UTF-8.
        n_samples : int
            The number of rows of the data to which the pairs refer.
        names : sequence of str, optional
            The name of each row, by which the file refers to it; by default rows are given by their numbers, from 0.
        strength, hard
            As in the class.
        """
        row_of: Callable[[str], int] = int
        if names is not None:  # a name of several rows is none
            counts = Counter(names)
            row_of = {name.strip(): row for row, name in enumerate(names) if counts[name] == 1}.__getitem__
        lines = _read_csv(path)
        if not lines or [cell.strip() for cell in lines[0]] != ["first", "second", "kind"]:
            problem = f"{str(path)!r} must begin with the line first,second,kind"
            raise FileFormatError(problem, code="pairs_file_header", file=str(path))
        pairs: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}
        for number, cells in enumerate(lines[1:], start=2):
            try:
                first, second, kind = (cell.strip() for cell in cells)
                pairs[kind].append((row_of(first), row_of(second)))
            except (ValueError, KeyError):
                expected = "row numbers" if names is None else "names of rows, each of a single row,"
                raise FileFormatError(
                    f"{str(path)!r}, line {number}: expected two {expected} and {KINDS[0]} or {KINDS[1]}, got {cells}",
                    code="pairs_file_line",
                    file=str(path),
                    line=number,
                    value=cells,
                ) from None
        return cls(pairs[KINDS[0]], pairs[KINDS[1]], n_samples, strength=strength, hard=hard)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the pairs, without their strength, in the format of :meth:`from_csv`; no partial file is left."""
        with atomic_write(path) as draft, open(draft, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["first", "second", "kind"])
            for kind, pairs in zip(KINDS, (self.must_link, self.cannot_link)):
                writer.writerows([int(first), int(second), kind] for first, second in pairs)

    # ---------------------------------------------------------------------------------------------------- properties

    @property
    def n_pairs(self) -> int:
        """The number of pairs of both kinds."""
        return len(self.must_link) + len(self.cannot_link)

    @cached_property
    def groups(self) -> np.ndarray:
        """The group of each row under the must-links, numbered in the order of their first rows."""
        return connected_components(self._must_graph, directed=False)[1].astype(np.int64)

    @cached_property
    def _must_graph(self) -> sp.csr_array:
        first, second = self.must_link.T
        return sp.csr_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(self.n_samples,) * 2)

    @property
    def rows(self) -> np.ndarray:
        """The rows that are part of any pair, in ascending order."""
        return np.unique(np.concatenate([self.must_link.ravel(), self.cannot_link.ravel()]))

    @cached_property
    def opposed_groups(self) -> np.ndarray:
        """The pairs of groups with a cannot-link between them, each once, shape (n, 2)."""
        return np.unique(np.sort(self.groups[self.cannot_link], axis=1), axis=0)

    @property
    def n_implied(self) -> int:
        """The number of pairs in the closure."""
        sizes, (first, second) = np.bincount(self.groups), self.opposed_groups.T
        return int((sizes * (sizes - 1) // 2).sum() + (sizes[first] * sizes[second]).sum())

    def closure(self) -> PairwiseConstraints:
        """Return all implied pairs: must-links within groups, cannot-links between all rows of opposed groups."""
        groups = self.groups
        sizes = np.bincount(groups)
        if self.n_implied > MAX_ENUMERATED_PAIRS:
            problem = f"these pairs imply {self.n_implied:,} pairs"
            hint = "use fewer, for example from_labels(..., max_pairs=...)"
            raise InputError(problem, hint, code="too_many_pairs", n_pairs=self.n_implied)
        members = np.split(np.argsort(groups, kind="stable"), np.cumsum(sizes)[:-1])
        within = [np.column_stack(np.triu_indices(sizes[g], 1)) for g in np.flatnonzero(sizes > 1)]
        none = np.empty((0, 2), dtype=np.int64)
        must = [members[g][pairs] for g, pairs in zip(np.flatnonzero(sizes > 1), within)]
        cannot = [np.array(np.meshgrid(members[a], members[b])).reshape(2, -1).T for a, b in self.opposed_groups]
        return self._like(np.concatenate([none, *must]), np.concatenate([none, *cannot]))

    def violations(self, labels: LabelsLike) -> PairwiseConstraints:
        """Return the pairs that a clustering violates, of either kind.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            The cluster of each row.
        """
        codes = check_node_labels(labels, self.n_samples)
        together = [codes[pairs[:, 0]] == codes[pairs[:, 1]] for pairs in (self.must_link, self.cannot_link)]
        return self._like(self.must_link[~together[0]], self.cannot_link[together[1]])

    # -------------------------------------------------------------------------------------------------------- subsets

    def sample(self, n_pairs: int, random_state: RandomState = None) -> PairwiseConstraints:
        """Return at most ``n_pairs`` pairs of both kinds together, drawn at random."""
        chosen = check_seed(random_state).permutation(self.n_pairs)[: check_int(n_pairs, "n_pairs")]
        is_chosen = np.isin(np.arange(self.n_pairs), chosen)
        n_must = len(self.must_link)
        return self._like(self.must_link[is_chosen[:n_must]], self.cannot_link[is_chosen[n_must:]])

    def subset(self, rows: Sequence[int] | np.ndarray) -> PairwiseConstraints:
        """Return the pairs among some of the rows, which are renumbered 0, 1, ... in the given order.

        Implied pairs are kept: if 0 and 1 as well as 1 and 2 are must-linked, 0 and 2 remain linked without row 1.
        """
        rows = np.asarray(rows)
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            problem = f"rows must be a list of row numbers; got {rows.dtype} of shape {rows.shape}"
            raise InputError(problem, code="invalid_rows", parameter="rows")
        if len(np.unique(rows)) != len(rows) or len(rows) == 0 or rows.min() < 0 or rows.max() >= self.n_samples:
            problem = f"rows must be different numbers from 0 to {self.n_samples - 1}, at least one"
            raise InputError(problem, code="invalid_rows", parameter="rows")
        new_number = np.full(self.n_samples, -1, dtype=np.int64)
        new_number[rows] = np.arange(len(rows))
        renumbered = [new_number[pairs] for pairs in (self._closed.must_link, self._closed.cannot_link)]
        must, cannot = (pairs[(pairs >= 0).all(axis=1)] for pairs in renumbered)
        return self._like(must, cannot, len(rows))

    def _like(self, must: np.ndarray, cannot: np.ndarray, n_samples: int | None = None) -> PairwiseConstraints:
        """Return other pairs with the same options."""
        n = self.n_samples if n_samples is None else n_samples
        return PairwiseConstraints(must, cannot, n, strength=self.strength, hard=self.hard)

    @cached_property
    def _closed(self) -> PairwiseConstraints:
        return self.closure()

    def per_row(self) -> np.ndarray:
        """Return an array with one handle per row, which cross-validation can slice and every ``fit`` accepts."""
        handles = np.empty(self.n_samples, dtype=object)
        handles[:] = [_Row(self, number) for number in range(self.n_samples)]
        return handles

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PairwiseConstraints)
            and (self.n_samples, self.strength, self.hard) == (other.n_samples, other.strength, other.hard)
            and np.array_equal(self.must_link, other.must_link)
            and np.array_equal(self.cannot_link, other.cannot_link)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = f"{len(self.must_link)} must-links, {len(self.cannot_link)} cannot-links"
        return f"PairwiseConstraints({counts}, n_samples={self.n_samples})"


@dataclass(frozen=True, eq=False, repr=False)
class _Row:
    """One row of a set of pairs."""

    pairs: PairwiseConstraints
    number: int


# What the ``constraints`` parameter of ``fit`` accepts: pairs, or the array of `PairwiseConstraints.per_row`.
ConstraintsLike: TypeAlias = PairwiseConstraints | np.ndarray | None


def check_constraints(constraints: ConstraintsLike, X: Any) -> PairwiseConstraints | None:
    """Return the pairs for the rows of ``X``, or for the nodes if it is a graph; convert handles of rows to pairs.

    Only the number of rows is taken from ``X``, which need not be validated.
    """
    if isinstance(constraints, np.ndarray) and constraints.size and isinstance(constraints.flat[0], _Row):
        constraints = constraints[0].pairs.subset([handle.number for handle in constraints])
    if constraints is None:
        return None
    if not isinstance(constraints, PairwiseConstraints):
        problem = (
            f"constraints must be PairwiseConstraints(must_link, cannot_link, n_samples); got "
            f"{type(constraints).__name__}"
        )
        raise InputTypeError(problem, code="invalid_constraints", parameter="constraints")
    n_samples = int(X.n_nodes if hasattr(X, "n_nodes") else _num_samples(X))
    if constraints.n_samples != n_samples:
        problem = f"the constraints refer to {constraints.n_samples} rows, but X has {n_samples}"
        hint = "in cross-validation pass constraints=pairs.per_row(), for a part of the rows pairs.subset(rows)"
        fields = {"parameter": "constraints", "value": constraints.n_samples, "n_samples": n_samples}
        raise InputError(problem, hint, code="constraints_size_mismatch", **fields)
    return constraints


def _read_csv(path: str | os.PathLike[str]) -> list[list[str]]:
    check_path(path)
    file = str(path)
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            return list(csv.reader(stream))
    except UnicodeDecodeError as error:
        problem = f"cannot read pairs from {file!r}, which is not encoded in UTF-8"
        raise FileFormatError(problem, "save it as UTF-8", code="pairs_file_encoding", file=file) from error
    except (OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        error_class = DataNotFoundError if isinstance(error, FileNotFoundError) else FileFormatError
        raise error_class(
            f"cannot read pairs from {file!r}: {reason}", code="pairs_file_unreadable", file=file, reason=reason
        ) from error


def _as_pairs(pairs: Any, kind: str, n: int) -> np.ndarray:
    """Validate pairs; return each once, with the smaller number first, in ascending order."""
    name = kind.replace("-", "_")
    try:
        array = to_numpy(pairs) if hasattr(pairs, "shape") else np.asarray(list(pairs))
    except (TypeError, ValueError) as error:
        problem = f"{name} must be a list of pairs of row numbers; got {shown(pairs)}"
        raise InputError(problem, code="invalid_pairs", parameter=name) from error
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        problem = f"{name} must be pairs of row numbers, shape (n_pairs, 2); got {array.dtype}, {array.shape}"
        raise InputError(problem, code="invalid_pairs", parameter=name)
    array = array.astype(np.int64)
    if array.min() < 0 or array.max() >= n:
        pair = tuple(array[((array < 0) | (array >= n)).any(axis=1)][0].tolist())
        reason = f"rows are numbered 0 to {n - 1}"
        problem = f"{name} contains the pair {pair}, but {reason}"
        hint = "correct or remove it"
        raise InputError(problem, hint, code="invalid_pair", parameter=name, kind=kind, pair=pair, reason=reason)
    equal = array[array[:, 0] == array[:, 1]]
    if len(equal):
        problem = f"{name} contains {len(equal)} pair(s) of a row with itself, such as {tuple(equal[0].tolist())}"
        raise InputError(problem, "remove them", code="self_pair", parameter=name, kind=kind, n_pairs=len(equal))
    low, high = np.sort(array, axis=1).T
    return np.column_stack(np.divmod(np.unique(low * n + high), n))


def _sample_each_class(labels: np.ndarray, rate: float, rng: np.random.RandomState) -> np.ndarray:
    """Return the positions of a fraction of every class, at least one each, in ascending order."""
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    if not members:
        return np.empty(0, dtype=np.int64)
    return np.sort(np.concatenate([rng.permutation(rows)[: int(np.ceil(rate * len(rows)))] for rows in members]))


# ------------------------------------------------------------------------------------- constraints as edges of a graph


def overwrite_edges(graph: AffinityGraph, constraints: PairwiseConstraints) -> AffinityGraph:
    """Give must-links the largest weight of the graph (1 if it has no edges), and remove the edges of cannot-links."""
    W = to_scipy(graph.weights)
    max_weight = float(W.data.max()) if W.nnz else 1.0
    must, cannot = (symmetric_pairs(pairs, graph.n_nodes) for pairs in (constraints.must_link, constraints.cannot_link))
    untouched = W - W.multiply(must + cannot)
    return _with_host_weights(graph, sp.csr_array(untouched + max_weight * must))


def add_constraints(graph: AffinityGraph, constraints: PairwiseConstraints) -> AffinityGraph:
    """Add edges of positive weight for must-links and of negative weight for cannot-links.

    The weights of either kind at a row sum to about ``strength`` times the mean degree, independently of the number of
    pairs: w_ij = ½ strength · d̄ · (1/m_i + 1/m_j), with m_i the number of pairs of that kind at row i. An edge between
    cannot-linked neighbours is replaced.
    """
    if constraints.strength == 0 or constraints.n_pairs == 0:
        return graph
    if graph.has_negative_weights and len(constraints.cannot_link):
        problem = "the graph already has negative weights, which could not be distinguished from cannot-links"
        hint = "use a graph with non-negative weights, or must-links only"
        raise InputError(problem, hint, code="negative_weights", parameter="constraints")
    W, n = to_scipy(graph.weights), graph.n_nodes
    unit = constraints.strength * (abs(W).sum() / n or 1.0)
    cannot = symmetric_pairs(constraints.cannot_link, n)
    must_weights, cannot_weights = constraint_weights(constraints)
    linked = W - W.multiply(cannot) + unit * (must_weights - cannot_weights)
    return _with_host_weights(graph, sp.csr_array(linked), signed=bool(cannot.nnz) or graph.signed)


def has_cannot_links(graph: AffinityGraph, constraints: PairwiseConstraints | None) -> bool:
    """Whether the negative weights of a graph are cannot-links."""
    links = constraints is not None and constraints.strength > 0 and len(constraints.cannot_link) > 0
    return links and graph.has_negative_weights


def split_by_sign(graph: AffinityGraph) -> tuple[AffinityGraph, AffinityGraph]:
    """Split the graph into its attracting edges and the absolute weights of the repelling ones; W = W⁺ - W⁻."""
    W = graph.weights
    data = csr_parts(W)[0]
    attracting = graph._with_weights(filter_entries(W, data > 0), signed=False)
    return attracting, AffinityGraph(filter_entries(with_data(W, -data), data < 0))


def attractive_part(graph: AffinityGraph) -> AffinityGraph:
    """Return the graph without its negative weights."""
    if graph.has_negative_weights:
        return split_by_sign(graph)[0]
    return graph._with_weights(graph.weights, signed=False) if graph.signed else graph


def group_means(values: Array, groups: np.ndarray) -> Array:
    """Replace every row of ``values`` by the mean over its group."""
    members = sp.csr_array((np.ones(len(groups)), (np.arange(len(groups)), groups)))
    sizes = np.asarray(members.sum(axis=0)).ravel()
    means = (members.T @ to_numpy(values)) / sizes.reshape(-1, *[1] * (values.ndim - 1))
    return asarray_like(means[groups], values, dtype=values.dtype)


def symmetric_pairs(pairs: np.ndarray, n: int) -> sp.csr_array:
    """Return the symmetric matrix with a one for every pair."""
    rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).T
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))


def constraint_weights(constraints: PairwiseConstraints) -> tuple[sp.csr_array, sp.csr_array]:
    """Return ½(1/m_i + 1/m_j) for must-links and for cannot-links, m_i the number of pairs of that kind at row i."""
    balanced = []
    for pairs in (constraints.must_link, constraints.cannot_link):
        pattern = symmetric_pairs(pairs, constraints.n_samples)
        counts = np.asarray(pattern.sum(axis=1)).ravel()
        per_row = sp.diags_array(1 / np.maximum(counts, 1)) @ pattern
        balanced.append(sp.csr_array(0.5 * (per_row + per_row.T)))
    return balanced[0], balanced[1]


def _with_host_weights(graph: AffinityGraph, W: sp.csr_array, **changes: Any) -> AffinityGraph:
    """Return the graph with other weights, converted to its array library and precision."""
    W.eliminate_zeros()
    return graph._with_weights(from_scipy_like(W, csr_parts(graph.weights)[0]), **changes)

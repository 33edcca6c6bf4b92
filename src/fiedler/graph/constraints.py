"""What a person knows of pairs: these two belong together, those two do not.

Must-links are transitive and cannot-links hold between whole groups of them, so pairs imply further pairs
(`PairwiseConstraints.closure`) and may contradict each other, which is refused with the pairs named.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_random_state

from .._files import atomic_write
from .._validation import check_fraction, check_int, check_labels, check_nonnegative
from ..core.backend import to_numpy
from .labels import known_labels

ENUMERATE_UP_TO = 10_000_000  # pairs
SHOWN = 5  # conflicts spelt out
KINDS = ("must-link", "cannot-link")


class PairwiseConstraints:
    """Pairs of rows that must share a cluster, and pairs that must not.

    Not an array, on purpose: scikit-learn's cross-validation slices arrays by rows, and pairs hold row numbers. In a
    search give ``constraints=pairs.per_row()``, which is sliced and re-indexed rightly, and see
    :class:`ConstrainedKFold`.

    Parameters
    ----------
    must_link, cannot_link : array-like of shape (n_pairs, 2), default=()
        Row numbers. Order within a pair and repeated pairs do not matter.
    n_samples : int
        The number of rows that the pairs speak of.
    strength : float, default=1.0
        How much the pairs of either kind at a row weigh beside its neighbours, in models that take them as edges.
    hard : bool, default=False
        Whether must-linked rows are kept together whatever the data say.

    Attributes
    ----------
    must_link, cannot_link : ndarray of shape (n_pairs, 2)
        Each pair once, the smaller number first, in order.
    groups : ndarray of shape (n_samples,)
        The number of each row's group under the must-links; a row without any is a group of its own.

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
    ValueError: 1 cannot-link(s) contradict the must-links: (0, 2), joined by 0-1-2; remove one of the pairs involved
    """

    def __init__(
        self,
        must_link: Any = (),
        cannot_link: Any = (),
        n_samples: int | None = None,
        *,
        strength: float = 1.0,
        hard: bool = False,
    ) -> None:
        if n_samples is None:
            raise ValueError("n_samples is needed: the number of rows that the pairs speak of")
        self.n_samples = check_int(n_samples, "n_samples")
        self.must_link = _as_pairs(must_link, "must_link", self.n_samples)
        self.cannot_link = _as_pairs(cannot_link, "cannot_link", self.n_samples)
        self.strength, self.hard = check_nonnegative(strength, "strength"), bool(hard)
        _refuse_conflicts(self)

    # ----------------------------------------------------------------------------------------------------- ways to make

    @classmethod
    def from_labels(
        cls,
        y: Any,
        *,
        rate: float | None = None,
        max_pairs: int | None = None,
        random_state: Any = None,
        strength: float = 1.0,
        hard: bool = False,
    ) -> PairwiseConstraints:
        """All pairs among rows of known label.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels, the number -1 where unknown.
        rate : float, optional
            The share of the known rows to use, drawn class by class, at least one of each [learned_laplacian, section
            IV]; default all.
        max_pairs : int, optional
            At most so many pairs of either kind, drawn at random. Pairs grow with the square of the labels.
        random_state : int, RandomState or None, default=None
        strength, hard
            As in the class.
        """
        n = len(check_labels(y, "y"))
        known, labels = known_labels(y, n)
        rows, rng = np.flatnonzero(known), check_random_state(random_state)
        if rate is not None:
            chosen = _share_of_each(labels, check_fraction(rate, "rate"), rng)
            rows, labels = rows[chosen], labels[chosen]
        if (total := len(rows) * (len(rows) - 1) // 2) > ENUMERATE_UP_TO:
            if max_pairs is None:
                raise ValueError(f"{len(rows)} labelled rows make {total:,} pairs; give max_pairs, or a rate")
            chosen = rng.permutation(len(rows))[: int((2 * ENUMERATE_UP_TO) ** 0.5)]
            rows, labels = rows[chosen], labels[chosen]
        first, second = np.triu_indices(len(rows), 1)
        same = labels[first] == labels[second]
        pairs = np.column_stack([rows[first], rows[second]])
        limit = len(pairs) if max_pairs is None else check_int(max_pairs, "max_pairs")
        must, cannot = (_some(kind, limit, rng) for kind in (pairs[same], pairs[~same]))
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
        """Pairs from a file with the columns first, second and kind ('must-link' or 'cannot-link').

        Rows go by their numbers, from 0, or by ``names``, one for each row.
        """
        row_of = int if names is None else _by_name(names)
        try:
            with open(path, newline="", encoding="utf-8-sig") as file:
                lines = list(csv.reader(file))
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cannot read pairs from {str(path)!r}: {error}") from error
        if not lines or [cell.strip() for cell in lines[0]] != ["first", "second", "kind"]:
            raise ValueError(f"{str(path)!r} must begin with the line first,second,kind")
        found: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}
        for number, row in enumerate(lines[1:], start=2):
            try:
                first, second, kind = (cell.strip() for cell in row)
                found[kind].append((row_of(first), row_of(second)))
            except (ValueError, KeyError):
                rows = "row numbers" if names is None else "rows by their names, each of one row,"
                raise ValueError(
                    f"{str(path)!r}, line {number}: expected two {rows} and {KINDS[0]} or {KINDS[1]}, got {row}"
                ) from None
        return cls(found[KINDS[0]], found[KINDS[1]], n_samples, strength=strength, hard=hard)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the pairs, without their strength, as :meth:`from_csv` reads them, whole or not at all."""
        with atomic_write(path) as draft, open(draft, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["first", "second", "kind"])
            for kind, pairs in zip(KINDS, (self.must_link, self.cannot_link)):
                writer.writerows([int(first), int(second), kind] for first, second in pairs)

    # ------------------------------------------------------------------------------------------ what it says

    @property
    def n_pairs(self) -> int:
        """The number of pairs of both kinds."""
        return len(self.must_link) + len(self.cannot_link)

    @cached_property
    def groups(self) -> np.ndarray:
        """Each row's group under the must-links, numbered in the order of their first rows."""
        return connected_components(self._must_graph, directed=False)[1].astype(np.int64)

    @cached_property
    def _must_graph(self) -> sp.csr_array:
        first, second = self.must_link.T
        return sp.csr_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(self.n_samples,) * 2)

    @property
    def rows(self) -> np.ndarray:
        """The rows that are part of any pair, in order."""
        return np.unique(np.concatenate([self.must_link.ravel(), self.cannot_link.ravel()]))

    @cached_property
    def opposed_groups(self) -> np.ndarray:
        """The pairs of groups between which there is a cannot-link, each once, shape (n, 2)."""
        return np.unique(np.sort(self.groups[self.cannot_link], axis=1), axis=0)

    @property
    def n_implied(self) -> int:
        """How many pairs the closure has."""
        sizes, (one, other) = np.bincount(self.groups), self.opposed_groups.T
        return int((sizes * (sizes - 1) // 2).sum() + (sizes[one] * sizes[other]).sum())

    def closure(self) -> PairwiseConstraints:
        """All implied pairs as well: must-links within a group, cannot-links between whole groups."""
        groups, sides = self.groups, self.opposed_groups
        sizes = np.bincount(groups)
        if self.n_implied > ENUMERATE_UP_TO:
            raise ValueError(
                f"these pairs imply {self.n_implied:,} pairs; use fewer, for example from_labels(..., max_pairs=...)"
            )
        members = np.split(np.argsort(groups, kind="stable"), np.cumsum(sizes)[:-1])
        within = [np.column_stack(np.triu_indices(sizes[g], 1)) for g in np.flatnonzero(sizes > 1)]
        must = [members[g][pairs] for g, pairs in zip(np.flatnonzero(sizes > 1), within)]
        cannot = [np.array(np.meshgrid(members[a], members[b])).reshape(2, -1).T for a, b in sides]
        return self._like(_stacked(must), _stacked(cannot))

    def violations(self, labels: Any) -> PairwiseConstraints:
        """The pairs that a clustering breaks, with their kind kept."""
        given = check_labels(to_numpy(labels), n_samples=self.n_samples)
        together = [given[pairs[:, 0]] == given[pairs[:, 1]] for pairs in (self.must_link, self.cannot_link)]
        return self._like(self.must_link[~together[0]], self.cannot_link[together[1]])

    # ------------------------------------------------------------------------------------------ parts

    def sample(self, n_pairs: int, random_state: Any = None) -> PairwiseConstraints:
        """At most ``n_pairs`` of the pairs, whatever their kind, drawn at random."""
        chosen = check_random_state(random_state).permutation(self.n_pairs)[: check_int(n_pairs, "n_pairs")]
        first = np.isin(np.arange(self.n_pairs), chosen)
        split = len(self.must_link)
        return self._like(self.must_link[first[:split]], self.cannot_link[first[split:]])

    def subset(self, rows: Any) -> PairwiseConstraints:
        """What is known of some of the rows, which are numbered 0, 1, ... in the given order.

        Implied pairs are kept: if 0 and 1, 1 and 2 must be linked, leaving out row 1 leaves 0 and 2 linked.
        """
        rows = np.asarray(rows)
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            raise ValueError(f"rows must be a list of row numbers; got {rows.dtype} of shape {rows.shape}")
        if len(np.unique(rows)) != len(rows) or len(rows) == 0 or rows.min() < 0 or rows.max() >= self.n_samples:
            raise ValueError(f"rows must be different numbers from 0 to {self.n_samples - 1}, at least one")
        place = np.full(self.n_samples, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        moved = [place[pairs] for pairs in (self._closed.must_link, self._closed.cannot_link)]
        must, cannot = (pairs[(pairs >= 0).all(axis=1)] for pairs in moved)
        return self._like(must, cannot, len(rows))

    def _like(self, must: np.ndarray, cannot: np.ndarray, n_samples: int | None = None) -> PairwiseConstraints:
        """Other pairs, meant as these are."""
        n = self.n_samples if n_samples is None else n_samples
        return PairwiseConstraints(must, cannot, n, strength=self.strength, hard=self.hard)

    @cached_property
    def _closed(self) -> PairwiseConstraints:
        return self.closure()

    def per_row(self) -> np.ndarray:
        """One handle a row, as an array that cross-validation may slice; any ``fit`` with ``constraints`` takes it."""
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


def check_constraints(constraints: Any, X: Any) -> PairwiseConstraints | None:
    """The pairs for the rows of ``X``, or the nodes if it is a graph; handles of rows are turned back into pairs."""
    if isinstance(constraints, np.ndarray) and len(constraints) and isinstance(constraints.flat[0], _Row):
        constraints = constraints[0].pairs.subset([handle.number for handle in constraints])
    if constraints is None:
        return None
    if not isinstance(constraints, PairwiseConstraints):
        raise TypeError(
            f"constraints must be PairwiseConstraints(must_link, cannot_link, n_samples); got "
            f"{type(constraints).__name__}"
        )
    n_samples = int(X.n_nodes if hasattr(X, "n_nodes") else np.shape(X)[0])
    if constraints.n_samples != n_samples:
        raise ValueError(
            f"the constraints speak of {constraints.n_samples} rows, but X has {n_samples}; in cross-validation pass "
            "constraints=pairs.per_row(), for a part of the rows pairs.subset(rows)"
        )
    return constraints


# ------------------------------------------------------------------------------------------ its parts


def _by_name(names: Sequence[str]) -> Callable[[str], int]:
    """From a name to its row, for names that only one row has."""
    counts = Counter(names)
    return {name.strip(): row for row, name in enumerate(names) if counts[name] == 1}.__getitem__


def _as_pairs(pairs: Any, name: str, n: int) -> np.ndarray:
    """Each pair once, the smaller number first, in order."""
    try:
        array = to_numpy(pairs) if hasattr(pairs, "shape") else np.asarray(list(pairs))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a list of pairs of row numbers; got {pairs!r:.60}") from error
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be pairs of row numbers, shape (n_pairs, 2); got {array.dtype}, {array.shape}")
    array = array.astype(np.int64)
    if array.min() < 0 or array.max() >= n:
        wrong = array[((array < 0) | (array >= n)).any(axis=1)][0]
        raise ValueError(f"{name} holds the pair {_shown(wrong)}, but rows are numbered 0 to {n - 1}")
    alone = array[array[:, 0] == array[:, 1]]
    if len(alone):
        raise ValueError(
            f"{name} holds {len(alone)} pair(s) of a row with itself, such as {_shown(alone[0])}; remove them"
        )
    low, high = np.sort(array, axis=1).T
    return np.column_stack(np.divmod(np.unique(low * n + high), n))


def _shown(pair: Any) -> str:
    return f"({int(pair[0])}, {int(pair[1])})"


class Conflict(NamedTuple):
    """A cannot-link and the chain of must-links that joins its two rows."""

    pair: tuple[int, int]
    chain: list[int]

    def __str__(self) -> str:
        return f"{_shown(self.pair)}, joined by {'-'.join(str(row) for row in self.chain)}"


def _refuse_conflicts(constraints: PairwiseConstraints) -> None:
    first, second = constraints.cannot_link.T
    wrong = constraints.cannot_link[constraints.groups[first] == constraints.groups[second]]
    if len(wrong) == 0:
        return
    shown = "; ".join(str(_conflict(constraints._must_graph, pair)) for pair in wrong[:SHOWN])
    more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    raise ValueError(
        f"{len(wrong)} cannot-link(s) contradict the must-links: {shown}{more}; remove one of the pairs involved"
    )


def _conflict(must: sp.csr_array, pair: np.ndarray) -> Conflict:
    first, second = (int(row) for row in pair)
    before = breadth_first_order(must, first, directed=False)[1]
    chain = [second]
    while chain[-1] != first:
        chain.append(int(before[chain[-1]]))
    return Conflict((first, second), chain[::-1])


def _share_of_each(labels: np.ndarray, rate: float, rng: np.random.RandomState) -> np.ndarray:
    """Positions of a share of every class, at least one, in order."""
    places = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    if not places:
        return np.empty(0, dtype=np.int64)
    return np.sort(np.concatenate([rng.permutation(at)[: int(np.ceil(rate * len(at)))] for at in places]))


def _some(pairs: np.ndarray, limit: int, rng: np.random.RandomState) -> np.ndarray:
    return pairs if len(pairs) <= limit else pairs[rng.permutation(len(pairs))[:limit]]


def _stacked(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int64)


# --------------------------------------------------------------------------------------------------------- the splitter


class ConstrainedKFold:
    """Folds that tear no must-linked group apart, so that no pair tells a fold about rows it is tested on.

    Parameters
    ----------
    constraints : PairwiseConstraints
    n_splits : int, default=5
    random_state : int, RandomState or None, default=None
        Shuffles the groups.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = PairwiseConstraints([(0, 9), (1, 8)], [(0, 1)], n_samples=10)
    >>> for train, test, known, hidden in ConstrainedKFold(pairs, 2, random_state=0).split_pairs(np.zeros((10, 1))):
    ...     print(len(train), len(test), known.n_pairs + hidden.n_pairs)
    5 5 2
    5 5 2
    """

    def __init__(self, constraints: PairwiseConstraints, n_splits: int = 5, random_state: Any = None) -> None:
        self.constraints = constraints
        self.n_splits = n_splits
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The rows of each fold for training and for testing."""
        pairs = check_constraints(self.constraints, X)
        if pairs is None:
            raise TypeError("ConstrainedKFold needs PairwiseConstraints; without any use scikit-learn's KFold")
        folds = GroupKFold(
            check_int(self.n_splits, "n_splits", minimum=2), shuffle=True, random_state=self.random_state
        )
        return folds.split(np.zeros(pairs.n_samples), groups=pairs.groups)

    def split_pairs(self, X: Any) -> Iterator[tuple[np.ndarray, np.ndarray, PairwiseConstraints, PairwiseConstraints]]:
        """The rows for training and testing, and the pairs among either, numbered within them."""
        for train, test in self.split(X):
            yield train, test, self.constraints.subset(train), self.constraints.subset(test)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

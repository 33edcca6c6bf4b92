"""What sets each cluster apart, and why a row is in its cluster.

A cluster is described by the columns in which it differs most from all rows (:mod:`fiedler.table.profiles`), by typical
rows and by borderline ones. A row is explained by its neighbours in the graph, by where a random walk from it goes, and
by the columns that speak for its cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._typing import MatrixLike
from .._validation import check_data, check_int
from ..core.arrays import Array, sq_row_norms, take_rows, to_numpy
from ..core.sparse import Sparse, row_entries
from ..errors import InputError, shown
from ..graph.affinity import AffinityGraph
from ..persistence import checked_steps
from ..table.columns import Requests, is_table, n_rows_of, recognise_columns, table_cells
from ..table.profiles import Contrast, Profiles, Terms, profile_rows, profile_table, terms_in_texts
from ..table.values import read_values
from .state import FittedState

MIN_EVIDENCE = 0.05  # of columns that are listed
MAX_COLUMNS, MAX_NEIGHBORS = 5, 5  # listed in the text
FULL_CONFIDENCE = 0.995  # rows of at least this confidence are not borderline


class Borderline(NamedTuple):
    """A row of low confidence."""

    row: int
    confidence: float  # its membership in its cluster
    other: int  # the other cluster of the largest membership
    share: float  # its membership in that one


class Neighbor(NamedTuple):
    """A neighbour of a row in the graph."""

    row: int
    share: float  # of the weights of all neighbours
    label: int


@dataclass(frozen=True)
class ClusterExplanation:
    """What sets a cluster apart.

    Attributes
    ----------
    label, size : int
        The number of the cluster, and that of its rows.
    name : str or None
        Its leading terms, or the columns in which it differs most; None if there is no such column.
    confidence : float
        The mean of the largest memberships of its rows, NaN if there are no rows or no other clusters.
    contrasts : list of Contrast
        The columns in which it differs most from all rows, one for each column.
    terms : list of (str, float)
        The leading terms of its texts.
    typical : list of int
        The rows of the highest confidence and, among equals, those closest to the mean.
    borderline : list of Borderline
        The rows of the lowest confidence.

    Examples
    --------
    >>> import fiedler
    >>> X = [[0.0, 1.0], [0.1, 2.0], [0.2, 1.5], [5.0, 1.2], [5.1, 1.8], [5.2, 1.4]]
    >>> model = fiedler.cluster(X, n_clusters=2, random_state=0).model
    >>> first = model.explain().clusters[model.labels_[0]]
    >>> first.name, first.size
    ('low x0', 3)
    """

    label: int
    size: int
    name: str | None
    confidence: float
    contrasts: list[Contrast]
    terms: Terms
    typical: list[int]
    borderline: list[Borderline]

    def __str__(self) -> str:
        return self.describe()

    def describe(self, row_names: Sequence[str] | None = None) -> str:
        """Return the text that ``print`` shows, with these names of the rows instead of their numbers."""
        name = "" if self.name is None else f" ({self.name})"
        lines = [f"cluster {self.label}{name}: {self.size:,} rows, confidence {self.confidence:.2f}"]
        if np.isnan(self.confidence):
            is_single = self.size > 0
            lines = [f"no clusters: {self.size:,} rows in one group" if is_single else f"cluster {self.label}: no rows"]
        lines += [f"  {contrast}" for contrast in self.contrasts]
        if self.terms:
            lines.append(f"  terms: {', '.join(term for term, _ in self.terms)}")
        if self.typical:
            lines.append(f"  typical rows: {', '.join(_name_of(row, row_names) for row in self.typical)}")
        if self.borderline:
            listed = [(_name_of(one.row, row_names), one) for one in self.borderline]
            details = [f"{name} ({one.confidence:.2f}, or cluster {one.other})" for name, one in listed]
            lines.append(f"  borderline rows: {', '.join(details)}")
        return "\n".join(lines)


def _name_of(row: int, row_names: Sequence[str] | None) -> str:
    return str(row) if row_names is None else row_names[row]


@dataclass(frozen=True)
class Explanation:
    """What sets the clusters apart.

    Attributes
    ----------
    clusters : list of ClusterExplanation
    profiles : Profiles
        The means and shares of all columns in all clusters; ``pandas.DataFrame(explanation.profiles.to_dict())``.

    Examples
    --------
    >>> import fiedler
    >>> X = [[0.0, 1.0], [0.1, 2.0], [0.2, 1.5], [5.0, 1.2], [5.1, 1.8], [5.2, 1.4]]
    >>> model = fiedler.cluster(X, n_clusters=2, random_state=0).model
    >>> print(model.explain().clusters[model.labels_[-1]].contrasts[0])
    x0: 5.1 (2.6 overall, +1.0 sd)
    """

    clusters: list[ClusterExplanation]
    profiles: Profiles

    def __str__(self) -> str:
        return self.describe()

    def describe(self, row_names: Sequence[str] | None = None) -> str:
        """Return the text that ``print`` shows, with these names of the rows instead of their numbers."""
        text = "\n\n".join(one.describe(row_names) for one in self.clusters)
        unit = "\n\nsd: difference from the mean of all rows, in standard deviations of the column."
        return text + (unit if any(one.contrasts for one in self.clusters) else "")


@dataclass(frozen=True)
class RowExplanation:
    """Why a row is in its cluster.

    Attributes
    ----------
    row : int or None
        Which row of the fit it is; None for a new one.
    label : int
        Its cluster, -1 for an outlier.
    rival : int or None
        The cluster of the largest membership among the others.
    memberships : ndarray of shape (n_clusters,)
    neighbors : list of Neighbor
        Its neighbours in the graph, the largest weights first.
    walk_mass : ndarray of shape (n_clusters,)
        Where a random walk from the row is after one step: the mean of its neighbours' memberships.
    columns : list of (str, float)
        By how much each column speaks for its cluster and against the rival: the difference of the squared distances
        to their means, in variances of the column. Empty if the columns are not known.
    cells : dict of str to str
        The values of the row in its columns, in words.

    Examples
    --------
    >>> import fiedler
    >>> X = [[0.0, 1.0], [0.1, 2.0], [0.2, 1.5], [5.0, 1.2], [5.1, 1.8], [5.2, 1.4]]
    >>> model = fiedler.cluster(X, n_clusters=2, random_state=0).model
    >>> why = model.explain(1)
    >>> sorted(neighbor.row for neighbor in why.neighbors)[:2], why.columns[0][0]
    ([0, 2], 'x0')
    """

    row: int | None
    label: int
    rival: int | None
    memberships: np.ndarray
    neighbors: list[Neighbor]
    walk_mass: np.ndarray
    columns: list[tuple[str, float]]
    cells: dict[str, str]

    def __str__(self) -> str:
        return self.describe()

    def describe(self, row_names: Sequence[str] | None = None) -> str:
        """Return the text that ``print`` shows, with these names of the rows instead of their numbers."""
        row = "the row" if self.row is None else f"row {_name_of(self.row, row_names)}"
        own = self.label if self.label >= 0 else int(self.memberships.argmax())
        place = f"is in cluster {own}" if self.label >= 0 else f"is an outlier; nearest is cluster {own}"
        lines = [f"{row} {place}, membership {self.memberships[own]:.2f}"]
        if self.rival is not None:
            lines[0] += f"; next is cluster {self.rival}, {self.memberships[self.rival]:.2f}"
        is_single = len(self.memberships) == 1
        if is_single:
            lines = [f"{row} is {'in no group' if self.label < 0 else 'like the others'}: there are no clusters"]
        if self.neighbors:
            shown = [(_name_of(one.row, row_names), one) for one in self.neighbors[:MAX_NEIGHBORS]]
            listed = [name if is_single else f"{name} (cluster {one.label})" for name, one in shown]
            lines.append(f"  neighbours: {', '.join(listed)}")
        if self.neighbors and not is_single:
            lines.append(f"  walk: {self.walk_mass[own]:.0%} of it is in cluster {own} after one step")
        for verb, sign in () if is_single else (("for", 1), ("against", -1)):
            columns = [
                f"{name}{f' = {self.cells[name]}' if name in self.cells else ''} ({value:+.1f})"
                for name, value in self.columns
                if value * sign >= MIN_EVIDENCE
            ]
            if columns:
                lines.append(f"  columns {verb} it: {', '.join(columns[:MAX_COLUMNS])}")
        return "\n".join(lines)


# ------------------------------------------------------------------------------------------------------------ clusters


def explain_clusters(
    profiles: Profiles,
    rows: Array | AffinityGraph | None,
    labels: np.ndarray,
    memberships: np.ndarray,
    *,
    n_rows: int = 3,
    numbers: np.ndarray | None = None,
) -> Explanation:
    """Describe every cluster."""
    numbers = np.arange(len(labels)) if numbers is None else numbers
    clusters, names, n_clusters = [], profiles.names(), memberships.shape[1]
    for label in range(n_clusters):
        members = np.flatnonzero(labels == label)
        Q = memberships[members]
        borderline = borderline_rows(members, Q, label, n_rows)
        clusters.append(
            ClusterExplanation(
                label,
                len(members),
                names[label] if len(members) else None,
                float(Q.max(axis=1).mean()) if len(members) and n_clusters > 1 else float("nan"),
                profiles.contrasts(label) if len(members) else [],
                profiles.leading_terms(label),
                numbers[typical_rows(rows, members, Q)[:n_rows]].tolist(),
                [one._replace(row=int(numbers[one.row])) for one in borderline],
            )
        )
    return Explanation(clusters, profiles)


def typical_rows(X: Array | AffinityGraph | None, members: np.ndarray, memberships: np.ndarray | None) -> np.ndarray:
    """Sort the members by confidence to two digits, then by distance to their mean, most typical first."""
    n = len(members)
    sq_distances = np.zeros(n)
    if X is not None and not isinstance(X, AffinityGraph):
        sq_distances = _sq_distances_to_mean(X[members])
    confidence = np.zeros(n) if memberships is None else memberships.max(axis=1).round(2)
    return members[np.lexsort((sq_distances, -confidence))]


def _sq_distances_to_mean(X: Array) -> np.ndarray:
    """Return ‖x - m‖² of every row, m their mean; sparse rows stay sparse: ‖x‖² - 2x'm + ‖m‖²."""
    if not X.shape[0]:
        return np.zeros(0)
    mean = np.asarray(X.mean(axis=0)).ravel()
    return sq_row_norms(X) - 2 * (X @ mean) + mean @ mean if sp.issparse(X) else sq_row_norms(X - mean)


def borderline_rows(members: np.ndarray, memberships: np.ndarray | None, label: int, max_rows: int) -> list[Borderline]:
    """Return the members of the lowest confidence, each with the other cluster of the largest membership."""
    if memberships is None or memberships.shape[1] < 2 or not len(members):
        return []
    confidence, others = memberships[:, label], memberships.copy()  # bounds on sizes allow that others are larger
    others[:, label] = -1
    second = others.argmax(axis=1)
    return [
        Borderline(int(members[i]), float(confidence[i]), int(second[i]), float(others[i, second[i]]))
        for i in np.argsort(confidence, kind="stable")[:max_rows]
        if confidence[i] < FULL_CONFIDENCE
    ]


# ---------------------------------------------------------------------------------------------------------------- rows


def explain_row(
    row: int | None,
    label: int,
    memberships: np.ndarray,
    neighbors: tuple[np.ndarray, np.ndarray],
    all_memberships: np.ndarray,
    labels: np.ndarray,
    columns: tuple[Profiles, np.ndarray] | None,
) -> RowExplanation:
    """Explain the cluster of a row."""
    order = [int(one) for one in np.argsort(-memberships, kind="stable") if one != label]
    own = label if label >= 0 else order.pop(0)
    rival = order[0] if order else None
    nodes, weights = neighbors
    shares = np.maximum(weights, 0) / (np.maximum(weights, 0).sum() or 1.0)
    nearest = np.argsort(-shares, kind="stable")
    evidence = [] if columns is None else columns[0].evidence(columns[1], own, rival)
    return RowExplanation(
        row,
        label,
        rival,
        memberships,
        [Neighbor(int(nodes[i]), float(shares[i]), int(labels[nodes[i]])) for i in nearest],
        shares @ all_memberships[nodes],
        [pair for pair in evidence if abs(pair[1]) > 0],
        {} if columns is None else columns[0].cells_of(columns[1]),
    )


# ----------------------------------------------------------------------------------------------------- readable columns


def describe_columns(
    X: Any,
    labels: np.ndarray,
    n_clusters: int,
    requests: Requests | None = None,
    used: Collection[str] | None = None,
) -> Profiles:
    """Return the profiles of a table, or of an array; its rows are those of the fit."""
    if not is_table(X):
        rows = check_data(X)
        _check_n_rows(rows.shape[0], len(labels))
        return profile_rows(rows if sp.issparse(rows) else to_numpy(rows), labels, n_clusters)
    cells = table_cells(X)
    _check_n_rows(n_rows_of(cells), len(labels))
    columns = recognise_columns(cells, Requests() if requests is None else requests)
    return profile_table(columns, labels, n_clusters, used)


def entries_of(profiles: Profiles, X: Any) -> Any:
    """Return the entries of the rows of a table by the names of its columns, of an array by their places."""
    if not is_table(X):
        return X if sp.issparse(X) else np.asarray(to_numpy(X), dtype=np.float64)
    cells = table_cells(X)
    kinds = dict(zip(profiles.columns, profiles.kinds))
    values = {name: _read(cells[name], kind) for name, kind in kinds.items() if name in cells}
    entries = np.full((n_rows_of(cells), len(profiles.columns)), np.nan)
    exact = set(zip(profiles.columns, profiles.levels))  # other words may differ from these in capitals
    for name in (name for name, kind in kinds.items() if kind == "text" and name in values):
        places = [i for i, column in enumerate(profiles.columns) if column == name]
        entries[:, places] = terms_in_texts(values.pop(name).tolist(), [str(profiles.levels[i]) for i in places])
    for i, (name, level) in enumerate(zip(profiles.columns, profiles.levels)):
        if name in values and level is None:
            entries[:, i] = values[name]
        elif name in values and level is not None:
            joined = [word if word is None or (name, word) in exact else word.casefold() for word in values[name]]
            spellings = {level} if (name, level.casefold()) in exact else {level, level.casefold()}
            entries[:, i] = [np.nan if word is None else word in spellings for word in joined]
    return entries


def _read(cells: Any, kind: str) -> np.ndarray:
    """Read the cells of a column of a kind; NaN for those that are none of it."""
    if kind in ("category", "text"):
        return read_values(cells, as_words=True).cells
    values = read_values(cells, expected="dates" if kind == "date" else "numbers")
    return values.cells if values.type != "words" else np.full(len(values.cells), np.nan)


def grow_profiles(
    profiles: Profiles, X: Any, labels: np.ndarray, n_clusters: int, places: np.ndarray | None = None
) -> Profiles:
    """Return the profiles of all rows, of which those of a table are new: the last ones, or those at ``places``.

    If the profiles keep their rows, old ones may have moved or be replaced; otherwise they stay where they were.
    """
    new = entries_of(profiles, X)
    places = np.arange(len(labels) - new.shape[0], len(labels)) if places is None else places
    grown = profiles.with_rows(new, labels[places], n_clusters)
    if profiles.entries is None:
        return grown
    entries = np.full((len(labels), len(profiles.columns)), np.nan, dtype=np.float32)
    entries[: len(profiles.entries)], entries[places] = profiles.entries[: len(labels)], new
    return profiles._replace(entries=entries).regrouped(labels, n_clusters)._replace(terms=grown.terms)


def _check_n_rows(given: int, expected: int) -> None:
    if given != expected:
        problem = f"X has {given} rows, but the model was fitted to {expected}"
        raise InputError(problem, "pass the rows of the fit", code="wrong_length", parameter="X")


# ---------------------------------------------------------------------------------------------------------- the method


def _as_given(row: Any) -> Any:
    return row


class _Source(NamedTuple):
    """The columns of the input of a pipeline by cluster, and what turns new rows of it into those of the clusterer."""

    profiles: Profiles | None = None
    prepare: Callable[[Any], Any] = _as_given


class ExplainMixin:
    """Mixin for ``explain()``, for models with memberships, a graph and the rows of the fit."""

    labels_: Array
    memberships_: Array
    graph_: AffinityGraph
    _state: FittedState
    _links_to: Callable[[Any, Array], tuple[Sparse, Array]]
    predict_proba: Callable[[Any], Array]

    def explain(
        self, row: int | MatrixLike | None = None, *, X: Any = None, n_rows: int = 3
    ) -> Explanation | RowExplanation:
        """Say what sets each cluster apart, or why a row is in its cluster.

        Parameters
        ----------
        row : int, or array or data frame with one row, optional
            The row to explain: one of the fit by its number, or a new one. None explains the clusters.
        X : data frame, dict of columns or array with the rows of the fit, optional
            The columns to explain with, by default those of the fit; they may be others. A model that was fitted to a
            very large table, or that chose another view of an array, does not keep the cells: pass them for the
            columns of a single row.
        n_rows : int, default=3
            The number of typical and of borderline rows of each cluster.

        Returns
        -------
        Explanation or RowExplanation
            The clusters, or the row; ``print`` shows it as text.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from fiedler import ManifoldClustering
        >>> X = load_wine(as_frame=True).data
        >>> model = ManifoldClustering(3, random_state=0).fit(X / X.std())
        >>> explanation = model.explain(X=X)
        >>> sorted(one.contrasts[0].column for one in explanation.clusters)
        ['color_intensity', 'od280/od315_of_diluted_wines', 'proline']
        >>> why = model.explain(5, X=X)
        >>> why.neighbors[0].label == why.label
        True
        """
        return self._explain(row, X, n_rows)

    def _explain(
        self,
        row: Any,
        X: Any,
        n_rows: int,
        source: _Source = _Source(),  # noqa: B008  (immutable)
    ) -> Explanation | RowExplanation:
        """Explain the clusters or a row, of a pipeline in the columns of its input."""
        check_is_fitted(self)
        n_rows = check_int(n_rows, "n_rows", minimum=0)
        F, labels, numbers = self._kept_rows()
        profiles = self._profiles_of(X, labels, F.shape[1], source.profiles)
        if row is None:
            return explain_clusters(profiles, self._rows_of_fit(), labels, F, n_rows=n_rows, numbers=numbers)
        if isinstance(row, bool | str | bytes):
            raise _not_a_row(row)
        if not isinstance(row, int | np.integer):
            return self._explain_new_row(row, X, profiles, F, labels, source)
        if self._state.landmarks is not None or not 0 <= row < len(labels):
            problem = f"there is no row {row} among those that the model keeps"
            hint = "pass a row of a fit in memory by its number, or the row itself"
            raise InputError(problem, hint, code="no_such_row", parameter="row", value=int(row))
        if self._state.copies is not None and self._state.copies.nodes[row] < 0:
            problem = f"row {row} has no entries, so it is in no cluster"
            raise InputError(problem, "explain another row", code="row_without_entries", parameter="row")
        entries = self._entries_of(int(row), X, profiles)
        nodes = row_entries(self.graph_.weights, int(row))
        columns = None if entries is None else (profiles, entries)
        return explain_row(int(row), int(labels[row]), F[row], nodes, F, labels, columns)

    def _kept_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return memberships, labels and numbers of the rows that the model keeps: all, or those of a sample."""
        if self._state.landmarks is None:
            return to_numpy(self.memberships_), to_numpy(self.labels_), None
        F = self._state.landmarks.memberships
        return F, F.argmax(axis=1), self._state.landmarks.numbers

    def _profiles_of(self, X: Any, labels: np.ndarray, n_clusters: int, stored: Profiles | None) -> Profiles:
        """Return the columns by cluster: those of X, the stored ones, those of the fit, or none."""
        if X is not None:
            return describe_columns(X, labels, n_clusters)
        fitted = self._state.fitted  # of a model at another level
        stored = stored or self._state.profiles or (None if fitted is None else fitted.profiles)
        if stored is not None and stored.counts.shape[0] == n_clusters + 1 and fitted is None:
            return stored
        if stored is not None and stored.entries is not None:
            return stored.regrouped(labels, n_clusters)
        rows = self._rows_of_fit()
        if rows is None or self._state.view is not None:
            return profile_table([], labels, n_clusters)
        encoder, names = getattr(self, "encoder_", None), getattr(self, "feature_names_in_", None)
        names = names if encoder is None else encoder.get_feature_names_out()
        return profile_rows(rows, labels, n_clusters, names, self._weights_of_rows())

    def _entries_of(self, row: int, X: Any, profiles: Profiles) -> np.ndarray | None:
        """Return the entries of a row of the fit, if its columns are known."""
        if X is not None:
            one = (
                {name: [column[row]] for name, column in table_cells(X).items()}
                if is_table(X)
                else check_data(X)[[row]]
            )
            return _first_row(entries_of(profiles, one))
        if profiles.entries is not None:
            return profiles.entries[row].astype(np.float64) if row < len(profiles.entries) else None
        is_of_rows = self._state.rows is not None and self._state.view is None
        if not is_of_rows or len(profiles.columns) != self._state.rows.shape[1] or self._state.profiles is not None:
            return None
        return _first_row(self._state.rows[[row if self._state.copies is None else int(self._state.copies.nodes[row])]])

    def _weights_of_rows(self) -> np.ndarray | None:
        """Return the weights of all rows of the fit; None if they are equal, or if copies of rows have them."""
        return self._state.weights if self._state.copies is None and self._state.landmarks is None else None

    def _rows_of_fit(self) -> Any:
        """Return all rows of the fit in the chosen view, also equal ones; None for a graph."""
        if self._state.rows is None:
            return None
        rows = self._state.rows if sp.issparse(self._state.rows) else to_numpy(self._state.rows)
        return rows if self._state.copies is None else rows[self._state.copies.nodes]

    def _explain_new_row(
        self,
        given: Any,
        X: Any,
        profiles: Profiles,
        F: np.ndarray,
        labels: np.ndarray,
        source: _Source,
    ) -> RowExplanation:
        """Explain a new row from an array or data frame, of a pipeline also from a list with a text."""
        is_list = source.prepare is not _as_given and isinstance(given, list)
        is_text = is_list and all(isinstance(text, str) for text in given)
        try:
            if not is_text and not is_table(given) and not sp.issparse(given):
                given = np.atleast_2d(to_numpy(given))
            elif isinstance(given, Mapping) and source.prepare is _as_given and getattr(self, "encoder_", None) is None:
                given = np.column_stack([np.asarray(cells, dtype=np.float64) for cells in given.values()])
            elif sp.issparse(given) and getattr(self, "encoder_", None) is not None:
                given = given.toarray()
        except (ValueError, TypeError, OverflowError):
            raise _not_a_row(given) from None
        row = source.prepare(given)
        first = np.arange(len(labels)) if self._state.copies is None else self._state.copies.first  # neighbours differ
        W, points = self._links_to(row, take_rows(self.memberships_, first) if self._state.landmarks is None else F)
        if points.shape[0] != 1:
            problem = f"explain takes one row at a time; got {points.shape[0]}"
            raise InputError(problem, "pass the rows one by one", code="several_rows", parameter="row")
        memberships = to_numpy(self.predict_proba(row))[0]
        is_of_rows = X is None and source.profiles is None and profiles.entries is None and self._state.profiles is None
        texts = [name for name, kind in zip(profiles.columns, profiles.kinds) if kind == "text"][:1]
        given = dict.fromkeys(texts, given) if is_text else given
        entries = _first_row(points if is_of_rows else entries_of(profiles, given))
        columns = (profiles, entries) if len(entries) == len(profiles.columns) else None
        nodes, weights = row_entries(W, 0)
        neighbors = (first[nodes], weights)
        return explain_row(None, int(memberships.argmax()), memberships, neighbors, F, labels, columns)


class ClusterPipeline(Pipeline):
    """A pipeline that ends in a clusterer, and explains its clusters in the columns of the input.

    ``fiedler cluster`` writes one, so that ``fiedler.load("out/customers/model.safetensors").explain()`` speaks of the
    columns of the table, in their units, and not of the numbers that the clusterer has compared.

    Parameters
    ----------
    steps, transform_input, memory, verbose
        As in :class:`sklearn.pipeline.Pipeline`.

    Attributes
    ----------
    profiles_ : Profiles or None
        The columns of the input by cluster; without them, those of the rows that the clusterer was fitted to are used.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fiedler import ManifoldClustering
    >>> from fiedler.manifold.explain import ClusterPipeline, describe_columns
    >>> table = {"width": [10.0, 11.0, 12.0, 90.0, 91.0, 92.0], "height": [1.0, 3.0, 2.0, 2.0, 1.0, 3.0]}
    >>> steps = [("scale", StandardScaler()), ("cluster", ManifoldClustering(2, random_state=0))]
    >>> model = ClusterPipeline(steps).fit(np.column_stack(list(table.values())))
    >>> model.profiles_ = describe_columns(table, model[-1].labels_, 2)
    >>> print(model.explain().clusters[model[-1].labels_[0]].contrasts[0])
    width: 11 (51 overall, -1.0 sd)
    """

    profiles_: Profiles | None = None

    def explain(
        self, row: int | MatrixLike | None = None, *, X: Any = None, n_rows: int = 3
    ) -> Explanation | RowExplanation:
        """Say what sets each cluster apart, or why a row is in its cluster; see `ManifoldClustering.explain`."""
        clusterer = self[-1]
        if not isinstance(clusterer, ExplainMixin):
            problem = f"the clusters of a {type(clusterer).__name__} cannot be explained"
            raise InputError(problem, "use ManifoldClustering, which is --method auto", code="cannot_explain")
        prepare = self[:-1].transform if len(self.steps) > 1 else _as_given
        return clusterer._explain(row, X, n_rows, _Source(self.profiles_, prepare))

    def add_rows(self, X: Any, places: np.ndarray | None = None) -> None:
        """Add the columns of new rows to those of the input, after an update of the clusterer; see `grow_profiles`."""
        if self.profiles_ is not None and is_table(X):
            about = (to_numpy(self[-1].labels_), int(self[-1].n_clusters_), places)
            self.profiles_ = grow_profiles(self.profiles_, X, *about)

    def known_profiles(self) -> Profiles | None:
        """Return the columns of the input by cluster, as the pipeline or its clusterer has them."""
        return self[-1]._state.profiles if self.profiles_ is None else self.profiles_

    def __check_restored__(self) -> None:
        """Check the steps of a file; a cache would be a folder of pickles."""
        if self.memory is not None:
            raise ValueError("a pipeline has a cache")
        checked_steps(self.steps)


def _not_a_row(row: object) -> InputError:
    problem = f"row must be a number or a row of data; got {shown(row)}"
    hint = "pass the number of a row of the fit, or a new row"
    return InputError(problem, hint, code="invalid_parameter", parameter="row")


def _first_row(rows: Any) -> np.ndarray:
    """Return the first row of an array or sparse matrix, on the host."""
    return np.asarray(rows[[0]].toarray() if sp.issparse(rows) else to_numpy(rows[:1]), dtype=np.float64)[0]

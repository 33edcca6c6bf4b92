"""How the values of each column are distributed in each cluster, and in which columns a cluster differs most.

    number, date     its mean; the contrast of a cluster is (mean_c - mean) / sd
    category         the share of each word; the contrast of a word is (p_c - p) / √(p (1 - p)), and its lift p_c / p
    text             the leading terms of each cluster, see :func:`fiedler.text.describe_clusters`

As an indicator has the variance p (1 - p), all contrasts are differences of means in standard deviations, so that
columns of all kinds can be ranked together. Missing values are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from ..text import DocumentVectorizer, describe_clusters
from .columns import Column

MAX_LEVELS = 30  # words of a category, the most frequent ones
MAX_TERMS = 10  # per cluster
MIN_DIFFERENCE = 0.05  # in standard deviations: smaller ones are displayed as 0.0
ROWS_PER_BLOCK = 65_536

Terms = list[tuple[str, float]]


class Contrast(NamedTuple):
    """How a cluster differs from all rows in a column.

    Attributes
    ----------
    column : str
    kind : {'number', 'date', 'category'}
    level : str or None
        The word of a category.
    value : float
        The mean of the cluster, or the share of its rows with this word; days since 1970 for dates.
    overall : float
        The same of all rows.
    difference : float
        ``value - overall`` in standard deviations of all rows.

    Examples
    --------
    >>> from fiedler.table.profiles import Contrast
    >>> print(Contrast("amount", "number", None, 83.2, 51.0, 1.3))
    amount: 83.2 (51 overall, +1.3 sd)
    >>> print(Contrast("plan", "category", "pro", 0.84, 0.4, 0.9))
    plan = pro: 84 % of the rows (40 % overall, 2.1 times as many)
    """

    column: str
    kind: str
    level: str | None
    value: float
    overall: float
    difference: float

    @property
    def lift(self) -> float | None:
        """How many times as frequent a word is in the cluster as in all rows; None for numbers."""
        return None if self.level is None else self.value / self.overall

    @property
    def title(self) -> str:
        """The column and, of a category, the word."""
        return self.column if self.level is None else f"{self.column} = {self.level}"

    @property
    def phrase(self) -> str:
        """The contrast in two words, as part of a name: 'high amount', 'plan = pro'."""
        if self.level is not None:
            return self.title
        words = ("late", "early") if self.kind == "date" else ("high", "low")
        return f"{words[self.difference < 0]} {self.column}"

    def __str__(self) -> str:
        value, overall = format_value(self.value, self.kind), format_value(self.overall, self.kind)
        if self.level is None:
            return f"{self.title}: {value} ({overall} overall, {self.difference:+.1f} sd)"
        return f"{self.title}: {value} of the rows ({overall} overall, {self.lift:.1f} times as many)"


def format_value(value: float, kind: str) -> str:
    """Write a mean, a date or a share.

    Examples
    --------
    >>> format_value(1234.567, "number"), format_value(19_783.2, "date"), format_value(0.125, "category")
    ('1,235', '2024-03-01', '12 %')
    """
    if kind == "date":
        return str(np.datetime64(round(value), "D"))
    if kind == "category":
        return f"{100 * abs(value):.0f} %"  # a share may be minus zero
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


class Profiles(NamedTuple):
    """The columns of a table by cluster. An entry is a column of numbers or dates, or a word of a category.

    Attributes
    ----------
    columns, kinds : list of str
        The column of each entry, and what it contains.
    levels : list of str or None
        The word of each entry, None for numbers and dates.
    overall, scales : ndarray of shape (m,)
        Means and standard deviations of all rows; the mean of an indicator is a share.
    means : ndarray of shape (n_clusters, m)
        The means of each cluster; those of all rows where a cluster has no values.
    terms : dict of str to list of n_clusters lists of (str, float)
        The leading terms of each cluster in the columns of texts.
    left_out : tuple of str
        Columns by which rows were not compared. They have profiles, but are not among the contrasts.
    """

    columns: list[str]
    kinds: list[str]
    levels: list[str | None]
    overall: np.ndarray
    scales: np.ndarray
    means: np.ndarray
    terms: dict[str, list[Terms]]
    left_out: tuple[str, ...] = ()

    @property
    def differences(self) -> np.ndarray:
        """The contrasts of all clusters and entries, of shape (n_clusters, m)."""
        return (self.means - self.overall) / self.scales

    def contrasts(self, label: int, n_contrasts: int = 6) -> list[Contrast]:
        """Return the largest contrasts of a cluster, one for each column; of a category, the word that it has more."""
        differences, found = self.differences[label], dict[str, Contrast]()
        for entry in np.argsort(-np.abs(differences), kind="stable"):
            if len(found) == n_contrasts or abs(differences[entry]) < MIN_DIFFERENCE:
                break
            is_absent = self.levels[entry] is not None and differences[entry] < 0
            if not is_absent and self.columns[entry] not in self.left_out:
                found.setdefault(self.columns[entry], self._contrast(label, int(entry), float(differences[entry])))
        return list(found.values())

    def _contrast(self, label: int, entry: int, difference: float) -> Contrast:
        what = (self.columns[entry], self.kinds[entry], self.levels[entry])
        return Contrast(*what, float(self.means[label, entry]), float(self.overall[entry]), difference)

    def leading_terms(self, label: int) -> Terms:
        """Return the leading terms of a cluster in all texts, the highest-ranked first."""
        texts = [self.terms[name] for name in self.terms if name not in self.left_out]
        terms = [pair for of_column in texts for pair in of_column[label]]
        return sorted(terms, key=lambda pair: -pair[1])[:MAX_TERMS]

    def names(self) -> list[str | None]:
        """Return a name for each cluster, see :func:`name_cluster`, longer ones where names would be equal."""
        labels = range(len(self.means))
        described = [(self.leading_terms(label), self.contrasts(label)) for label in labels]
        names = [name_cluster(*one) for one in described]
        for n_more in (1, 2):
            repeated = {name for name in names if names.count(name) > 1}
            names = [name_cluster(*one, n_more) if name in repeated else name for name, one in zip(names, described)]
        return names

    def evidence(self, entries: np.ndarray, label: int, rival: int | None) -> list[tuple[str, float]]:
        """Return by how much each column of a row speaks for a cluster against another one, the largest first.

        It is the sum of ((x - m_rival)² - (x - m_label)²) / s² over the entries of the column; NaN counts as 0.

        Parameters
        ----------
        entries : ndarray of shape (m,)
            The values of the row.
        label, rival : int
            The clusters; without a rival, the row is compared with the means of all rows.
        """
        other = self.overall if rival is None else self.means[rival]
        parts = ((entries - other) ** 2 - (entries - self.means[label]) ** 2) / self.scales**2
        sums: dict[str, float] = {}
        for column, part in zip(self.columns, np.nan_to_num(parts)):
            sums[column] = sums.get(column, 0.0) + float(part)
        return sorted(sums.items(), key=lambda pair: -abs(pair[1]))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return a row for each cluster and entry, as columns: ``pandas.DataFrame(profiles.to_dict())``."""
        n_clusters, n_entries = self.means.shape
        used = [column not in self.left_out for column in self.columns]
        return {
            "cluster": np.repeat(np.arange(n_clusters), n_entries).tolist(),
            "column": self.columns * n_clusters,
            "level": self.levels * n_clusters,
            "used": used * n_clusters,
            "value": self.means.ravel().tolist(),
            "overall": np.tile(self.overall, n_clusters).tolist(),
            "difference": self.differences.ravel().tolist(),
        }


def name_cluster(terms: Terms, contrasts: Sequence[Contrast], n_more: int = 0) -> str | None:
    """Return a name for a cluster: its first three terms, or its two largest contrasts, and ``n_more`` of them.

    Examples
    --------
    >>> amount, plan = Contrast("amount", "number", None, 2, 5, -1.0), Contrast("plan", "category", "pro", 1, 0.5, 1.0)
    >>> name_cluster([], [amount, plan])
    'low amount, plan = pro'
    """
    if terms:
        return ", ".join(term for term, _ in terms[: 3 + n_more])
    return ", ".join(contrast.phrase for contrast in contrasts[: 2 + n_more]) or None


# ---------------------------------------------------------------------------------------------------- from the columns


def profile_rows(X: Any, labels: np.ndarray, n_clusters: int, names: Iterable[str] | None = None) -> Profiles:
    """Return the profiles of an array or sparse matrix of finite numbers.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
    labels : ndarray of shape (n,)
        -1 for rows without a cluster.
    n_clusters : int
    names : sequence of d str, optional
        By default x0, x1, ...
    """
    columns = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names]
    members, sizes = _indicators(labels, n_clusters)
    if sp.issparse(X):
        X = X.tocsr()
        overall, variances = mean_variance_axis(X.astype(np.float64), axis=0)
        sums = (members @ X).toarray() - sizes[:, None] * overall
    else:
        overall = np.mean(X, axis=0, dtype=np.float64)
        squares, sums = np.zeros(X.shape[1]), np.zeros((n_clusters, X.shape[1]))
        for start in range(0, len(X), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            centred = X[block] - overall
            squares += (centred**2).sum(axis=0)
            sums += members[:, block] @ centred
        variances = squares / len(X)
    means = overall + sums / np.maximum(sizes, 1)[:, None]
    return Profiles(columns, ["number"] * len(columns), [None] * len(columns), overall, _scales(variances), means, {})


def profile_table(
    columns: Sequence[Column], labels: np.ndarray, n_clusters: int, used: Collection[str] | None = None
) -> Profiles:
    """Return the profiles of the columns of a table, also of those by which rows were not compared.

    Columns of ids, constants and vectors have none.
    """
    members, _ = _indicators(labels, n_clusters)
    names: list[tuple[str, str, str | None]] = []
    statistics: list[tuple[float, float, np.ndarray]] = []
    terms = {}
    for column in columns:
        if column.kind == "text":
            terms[column.name] = text_terms(column.values.cells.tolist(), labels, n_clusters)
        for level, values in column_entries(column):
            names.append((column.name, column.kind, level))
            statistics.append(_statistics(values, members))
    overall, variances, means = zip(*statistics) if statistics else ((), (), ())
    titles, kinds, levels = (list(part) for part in zip(*names)) if names else ([], [], [])
    table = np.column_stack(means) if means else np.zeros((n_clusters, 0))
    scales = _scales(np.array(variances))
    left_out = [] if used is None else [name for name in {*titles, *terms} if name not in used]
    means_of_all = np.array(overall, dtype=np.float64)
    return Profiles(titles, kinds, levels, means_of_all, scales, table, terms, tuple(sorted(left_out)))


def column_entries(column: Column) -> list[tuple[str | None, np.ndarray]]:
    """Return the numbers of a column, or the indicators of its frequent words; NaN where a value is missing."""
    if column.kind in ("number", "date"):
        return [(None, column.values.cells)]
    if column.kind != "category":
        return []
    cells, is_missing = column.values.cells, column.values.is_missing
    words, counts = np.unique(cells[~is_missing].astype(str), return_counts=True)
    frequent = words[np.argsort(-counts, kind="stable")[:MAX_LEVELS]].tolist()
    return [(word, np.where(is_missing, np.nan, cells == word)) for word in frequent]


def text_terms(texts: Sequence[str | None], labels: np.ndarray, n_clusters: int) -> list[Terms]:
    """Return the leading terms of each cluster."""
    documents = [text or "" for text in texts]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # documents without terms are expected here
            vectorizer = DocumentVectorizer().fit(documents)
    except ValueError:  # no document has a term
        return [[] for _ in range(n_clusters)]
    vocabulary = vectorizer.get_feature_names_out().tolist()
    return matrix_terms(vectorizer.counts(documents), labels, n_clusters, vocabulary)


def matrix_terms(counts: Any, labels: np.ndarray, n_clusters: int, vocabulary: Sequence[str]) -> list[Terms]:
    """Return the leading terms of each cluster from counts of terms."""
    found: list[Terms] = [[] for _ in range(n_clusters)]
    for description in describe_clusters(counts, labels, list(vocabulary), n_terms=MAX_TERMS):
        found[int(description.cluster)] = description.terms
    return found


def _indicators(labels: np.ndarray, n_clusters: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return the matrix of shape (n_clusters, n) that sums rows by cluster, and the sizes of the clusters."""
    rows = np.flatnonzero(labels >= 0)
    ones, shape = np.ones(len(rows)), (n_clusters, len(labels))
    members = sp.csc_array((ones, (labels[rows], rows)), shape=shape)  # columns are cheap to slice
    return members, np.bincount(labels[rows], minlength=n_clusters)


def _statistics(values: np.ndarray, members: sp.csr_array) -> tuple[float, float, np.ndarray]:
    """Return mean, variance and the means of the clusters of a column, without missing values."""
    present = ~np.isnan(values)
    overall = float(values[present].mean())
    centred = np.where(present, values - overall, 0.0)
    counts = members @ present.astype(np.float64)
    return overall, float((centred**2).sum() / present.sum()), overall + (members @ centred) / np.maximum(counts, 1)


def _scales(variances: np.ndarray) -> np.ndarray:
    """Return standard deviations, 1 for a constant column."""
    return np.sqrt(np.where(variances > 0, variances, 1.0))

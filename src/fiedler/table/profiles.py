"""How the values of each column are distributed in each cluster, and in which columns a cluster differs most.

    number, date     its mean; the contrast of a cluster is (mean_c - mean) / sd
    category         the share of each word; the contrast of a word is (p_c - p) / √(p (1 - p)), and its lift p_c / p
    text             the leading terms of each cluster, see :func:`fiedler.text.describe_clusters`

As an indicator has the variance p (1 - p), all contrasts are differences of means in standard deviations, so that
columns of all kinds can be ranked together. Missing values are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..errors import FiedlerWarning, ignore_warnings
from ..text import DocumentVectorizer, describe_clusters
from .columns import Column

MAX_LEVELS = 30  # words of a category, the most frequent ones
MAX_TERMS = 10  # per cluster
MIN_DIFFERENCE = 0.05  # in standard deviations: smaller ones are displayed as 0.0
ROWS_PER_BLOCK = 65_536
ROUNDING = 1e-12  # relative to the mean

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
    counts : ndarray of shape (n_clusters + 1, m)
        The number of values in each cluster, or the sum of their weights, and in the last line that of all rows.
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
    counts: np.ndarray
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
                what = (self.columns[entry], self.kinds[entry], self.levels[entry])
                numbers = (self.means[label, entry], self.overall[entry], differences[entry])
                found.setdefault(self.columns[entry], Contrast(*what, *map(float, numbers)))
        return list(found.values())

    def leading_terms(self, label: int) -> Terms:
        """Return the leading terms of a cluster in all texts, the highest-ranked first."""
        texts = [self.terms[name] for name in self.terms if name not in self.left_out]
        terms = [pair for of_column in texts for pair in of_column[label]]
        return sorted(terms, key=lambda pair: -pair[1])[:MAX_TERMS]

    def names(self) -> list[str | None]:
        """Return a name for each cluster: its terms or its largest contrasts, more of them where names are equal."""
        labels = range(len(self.means))
        described = [(self.leading_terms(label), self.contrasts(label)) for label in labels]
        names = [name_cluster(*one) for one in described]
        for n_more in (1, 2):
            repeated = {name for name in names if names.count(name) > 1}
            names = [name_cluster(*one, n_more) if name in repeated else name for name, one in zip(names, described)]
        return names

    def evidence(self, entries: np.ndarray, label: int, rival: int | None) -> list[tuple[str, float]]:
        """Return by how much each column of a row speaks for a cluster against another one, the largest first.

        It is the sum of ((x - m_rival)² - (x - m_label)²) / s² over the entries of the column; NaN counts as 0. Without
        a rival, the row is compared with the means of all rows.
        """
        other = self.overall if rival is None else self.means[rival]
        parts = ((entries - other) ** 2 - (entries - self.means[label]) ** 2) / self.scales**2
        sums: dict[str, float] = {}
        for column, part in zip(self.columns, np.nan_to_num(parts)):
            sums[column] = sums.get(column, 0.0) + float(part)
        return sorted(sums.items(), key=lambda pair: -abs(pair[1]))

    def with_rows(self, entries: Any, labels: np.ndarray, n_clusters: int) -> Profiles:
        """Return the profiles with more rows, of entries (r, m), in perhaps more clusters; terms stay as they are."""
        added = n_clusters - len(self.means)
        means = np.concatenate([self.means, np.tile(self.overall, (added, 1))])
        counts = np.insert(self.counts, [len(self.means)] * added, 0.0, axis=0)
        new = _Moments.of(entries, labels, n_clusters)
        both = new.joined_with(_Moments(counts, np.vstack([means, self.overall]), self.scales**2))
        terms = {name: [*of_column, *([] for _ in range(added))] for name, of_column in self.terms.items()}
        return _profiles(self.columns, self.kinds, self.levels, both, terms)._replace(left_out=self.left_out)

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
    """Return a name for a cluster: its first three terms, or its two largest contrasts, and ``n_more`` of them."""
    if terms:
        return ", ".join(term for term, _ in terms[: 3 + n_more])
    return ", ".join(contrast.phrase for contrast in contrasts[: 2 + n_more]) or None


# ---------------------------------------------------------------------------------------------------- from the columns


def profile_rows(
    X: Any, labels: np.ndarray, n_clusters: int, names: Iterable[str] | None = None, weights: np.ndarray | None = None
) -> Profiles:
    """Return the profiles of an array or sparse matrix of finite numbers; a label is -1 for rows without a cluster."""
    columns = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names]
    kinds, levels = ["number"] * len(columns), [None] * len(columns)
    return _profiles(columns, kinds, levels, _Moments.of(X, labels, n_clusters, weights), {})


def profile_table(
    columns: Sequence[Column],
    labels: np.ndarray,
    n_clusters: int,
    used: Collection[str] | None = None,
    weights: np.ndarray | None = None,
) -> Profiles:
    """Return the profiles of the columns of a table, also of those not ``used``; ids, constants, vectors have none."""
    names: list[tuple[str, str, str | None]] = []
    moments: list[_Moments] = []
    terms = {}
    for column in columns:
        if column.kind == "text":
            terms[column.name] = text_terms(column.values.cells.tolist(), labels, n_clusters)
        for level, values in column_entries(column):
            names.append((column.name, column.kind, level))
            moments.append(_Moments.of(values[:, None], labels, n_clusters, weights))
    titles, kinds, levels = (list(part) for part in zip(*names)) if names else ([], [], [])
    left_out = [] if used is None else [name for name in {*titles, *terms} if name not in used]
    profiles = _profiles(titles, kinds, levels, _Moments.side_by_side(moments, n_clusters), terms)
    return profiles._replace(left_out=tuple(sorted(left_out)))


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
        with ignore_warnings(FiedlerWarning):  # documents without terms are expected here
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


# ------------------------------------------------------------------------------------------------------------- moments


class _Moments(NamedTuple):
    """Counts and means of entries in each cluster and, in the last line, of all rows, and variances of all rows."""

    counts: np.ndarray  # (n_clusters + 1, m)
    means: np.ndarray  # (n_clusters + 1, m), 0 without values
    variances: np.ndarray  # (m,)

    @classmethod
    def of(cls, X: Any, labels: np.ndarray, n_clusters: int, weights: np.ndarray | None = None) -> _Moments:
        """Compute the moments of rows of numbers, of which NaN is left out, block by block."""
        n, m = X.shape
        weights = np.ones(n) if weights is None else weights
        groups = np.where(labels >= 0, labels, n_clusters)  # rows without a cluster only count among all rows
        center = _mean_of_columns(X, weights)
        counts, sums = np.zeros((n_clusters + 1, m)), np.zeros((n_clusters + 1, m))
        squares = np.zeros(m)
        for start in range(0, n, ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            shape = (n_clusters + 1, len(weights[block]))
            members = sp.csr_array((weights[block], (groups[block], np.arange(shape[1]))), shape=shape)
            if sp.issparse(X):
                part = X[block].astype(np.float64)
                present = members.sum(axis=1)[:, None]
                sums += (members @ part).toarray() - present * center
                counts += present
                # Σ w (x - c)² = Σ w x² - 2c Σ w x + c² Σ w
                total = weights[block].sum()
                squares += weights[block] @ part.power(2) - 2 * center * (weights[block] @ part) + center**2 * total
                continue
            is_present = ~np.isnan(X[block])
            centred = np.where(is_present, X[block] - center, 0.0)
            counts += members @ is_present.astype(np.float64)
            sums += members @ centred
            squares += weights[block] @ centred**2
        counts[-1], sums[-1] = counts.sum(axis=0), sums.sum(axis=0)
        safe = np.maximum(counts, np.finfo(float).tiny)
        return cls(
            counts, np.where(counts > 0, center + sums / safe, 0.0), squares / safe[-1] - (sums[-1] / safe[-1]) ** 2
        )

    @classmethod
    def side_by_side(cls, parts: Sequence[_Moments], n_clusters: int) -> _Moments:
        """Return the moments of all columns."""
        nothing = cls(np.zeros((n_clusters + 1, 0)), np.zeros((n_clusters + 1, 0)), np.zeros(0))
        return cls(*(np.concatenate(arrays, axis=-1) for arrays in zip(nothing, *parts)))

    def joined_with(self, other: _Moments) -> _Moments:
        """Return the moments of the rows of both [Chan, Golub & LeVeque 1983]."""
        counts = self.counts + other.counts
        share = self.counts / np.maximum(counts, np.finfo(float).tiny)
        means = other.means + share * (self.means - other.means)
        p, q = share[-1], 1 - share[-1]
        variances = p * self.variances + q * other.variances + p * q * (self.means[-1] - other.means[-1]) ** 2
        return _Moments(counts, means, variances)


def _mean_of_columns(X: Any, weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean of every column, without missing values."""
    if sp.issparse(X):
        return np.asarray(weights @ X).ravel() / weights.sum()
    sums, counts = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, len(X), ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        is_present = ~np.isnan(X[block])
        sums += weights[block] @ np.where(is_present, X[block], 0.0)
        counts += weights[block] @ is_present
    return sums / np.maximum(counts, np.finfo(float).tiny)


def _profiles(
    columns: list[str], kinds: list[str], levels: list[Any], moments: _Moments, terms: dict[str, list[Terms]]
) -> Profiles:
    overall = moments.means[-1]
    means = np.where(moments.counts[:-1] > 0, moments.means[:-1], overall)
    return Profiles(columns, kinds, levels, overall, _scales(moments.variances, overall), means, moments.counts, terms)


def _scales(variances: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return standard deviations, 1 for a column that is constant up to rounding."""
    return np.sqrt(np.where(variances > (ROUNDING * means) ** 2, variances, 1.0))

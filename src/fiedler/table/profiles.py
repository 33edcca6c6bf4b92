"""How the values of each column are distributed in each cluster, and in which columns a cluster differs most.

    number, date     its mean; the contrast of a cluster is (mean_c - mean) / sd
    category         the share of each word; the contrast of a word is (p_c - p) / √(p (1 - p)), and its lift p_c / p
    text             the leading terms of each cluster, see :func:`fiedler.text.describe_clusters`; for the first ones,
                     the share of the texts that contain them, as for words of a category

As an indicator has the variance p (1 - p), all contrasts are differences of means in standard deviations, so that
columns of all kinds can be ranked together: by their size times the share of the rows of the cluster that are on their
side of the mean of all rows. Missing values are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..errors import FiedlerWarning, ignore_warnings
from ..text import DocumentVectorizer, describe_clusters
from .columns import Column

MAX_LEVELS = 30  # words of a category, the most frequent ones
MAX_TERMS = 10  # per cluster
NAMED_TERMS = 3  # per cluster, whose shares are computed
MAX_PHRASES = 12  # per cluster, among which one is found that tells it from a namesake
MAX_KEPT = 20_000_000  # entries of rows, 80 MB
MIN_DIFFERENCE = 0.05  # in standard deviations: smaller ones are displayed as 0.0
ROWS_PER_BLOCK = 65_536
ROUNDING = 1e-12  # relative to the mean
CLEAR, WEAK = 0.4, 0.2  # scores from which on a contrast is part of a name, and is one if there is no better name
MIN_COVERAGE = 0.5  # share of the rows of a cluster that has a word after which the cluster is called
PREFIXES = "$£¥"  # currencies that are written before a number

Terms = list[tuple[str, float]]


class Contrast(NamedTuple):
    """How a cluster differs from all rows in a column.

    Attributes
    ----------
    column : str
    kind : {'number', 'date', 'category', 'text'}
    level : str or None
        The word of a category, or a term of texts.
    value : float
        The mean of the cluster, or the share of its rows with this word; days since 1970 for dates.
    overall : float
        The same of all rows.
    difference : float
        ``value - overall`` in standard deviations of all rows.
    coverage : float
        The share of the rows of the cluster that are on this side of the mean of all rows; of a word, that have it. One
        row is added that is not, so that few rows say little.
    unit : str
        Of the numbers, such as 'kg'.

    Examples
    --------
    >>> from fiedler.table.profiles import Contrast
    >>> print(Contrast("amount", "number", None, 83.2, 51.0, 1.3, unit="kg"))
    amount: 83.2 kg (51 kg overall, +1.3 sd)
    >>> print(Contrast("plan", "category", "pro", 0.84, 0.4, 0.9))
    plan = pro: 84 % of the rows (40 % overall, 2.1 times as many)
    """

    column: str
    kind: str
    level: str | None
    value: float
    overall: float
    difference: float
    coverage: float = 1.0
    unit: str = ""

    @property
    def score(self) -> float:
        """By how much the column separates the cluster: the size of the difference times its coverage."""
        return abs(self.difference) * self.coverage

    @property
    def lift(self) -> float | None:
        """How many times as frequent a word is in the cluster as in all rows; None for numbers."""
        return None if self.level is None else self.value / self.overall

    @property
    def title(self) -> str:
        """The column and, of a category or a text, the word."""
        if self.level is None:
            return self.column
        return f"{self.level!r} in {self.column}" if self.kind == "text" else f"{self.column} = {self.level}"

    @property
    def phrase(self) -> str:
        """The contrast in a few words, as part of a name: 'high amount', 'plan = pro', 'joined around 2019'."""
        if self.level is not None:
            return f"{self.column}: {self.level}" if self.kind == "text" else self.title
        if self.kind == "date":
            spread = abs((self.value - self.overall) / self.difference)  # standard deviation of all rows, in days
            day = format_value(self.value, "date")
            return f"{self.column} around {day[:4] if spread > 200 else day[:7] if spread > 15 else day}"
        return f"{'high' if self.difference > 0 else 'low'} {self.column}"

    def __str__(self) -> str:
        value, overall = (format_value(one, self.kind, self.unit) for one in (self.value, self.overall))
        if self.level is None:
            return f"{self.title}: {value} ({overall} overall, {self.difference:+.1f} sd)"
        return f"{self.title}: {value} of the rows ({overall} overall, {self.lift:.1f} times as many)"


def format_value(value: float, kind: str, unit: str = "") -> str:
    """Write a mean, a date or a share.

    Examples
    --------
    >>> format_value(1234.567, "number"), format_value(19_783.2, "date"), format_value(0.125, "category")
    ('1235', '2024-03-01', '12 %')
    >>> format_value(12.04, "number", "kg"), format_value(-12.5, "number", "$")
    ('12.04 kg', '-$12.5')
    """
    if kind == "date":
        return str(np.datetime64(round(value), "D"))
    if kind in ("category", "text"):
        return f"{100 * abs(value):.0f} %"  # a share may be minus zero
    size = abs(value)
    number = f"{size:.4g}" if size < 1000 or size >= 1e9 else f"{size:,.0f}" if round(size) >= 10_000 else f"{size:.0f}"
    sign = "-" if value < 0 else ""
    return f"{sign}{unit}{number}" if unit and unit in PREFIXES else f"{sign}{number} {unit}".rstrip()


class Profiles(NamedTuple):
    """The columns of a table by cluster. An entry is a column of numbers or dates, or a word of a category or text.

    Attributes
    ----------
    columns, kinds : list of str
        The column of each entry, and what it contains.
    levels : list of str or None
        The word or term of each entry, None for numbers and dates.
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
    units : dict of str to str
        The units of columns of numbers, of those that have one.
    above : ndarray of shape (n_clusters, m) or None
        The share of the values of each cluster above the mean of all rows.
    entries : ndarray of shape (n_rows, m) or None
        The entries of all rows, of tables that are not too large; NaN where a value is missing.
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
    units: Mapping[str, str] = {}
    above: np.ndarray | None = None
    entries: np.ndarray | None = None

    @property
    def differences(self) -> np.ndarray:
        """The contrasts of all clusters and entries, of shape (n_clusters, m)."""
        return (self.means - self.overall) / self.scales

    def contrasts(self, label: int, n_contrasts: int = 6, *, of_names: bool = False) -> list[Contrast]:
        """Return the contrasts of the highest scores, one for each column; of words, one that the cluster has more.

        With ``of_names``, those after which the cluster may be called, of texts with up to three terms.
        """
        differences, above = self.differences[label], None if self.above is None else self.above[label]
        coverage = np.ones(len(differences)) if above is None else np.where(differences > 0, above, 1 - above)
        coverage = coverage * self.counts[label] / (self.counts[label] + 1)
        is_word = np.array([level is not None for level in self.levels], dtype=bool)
        is_left_out = np.array([column in self.left_out for column in self.columns], dtype=bool)
        is_shown = (np.abs(differences) >= MIN_DIFFERENCE) & ~is_left_out & ~(is_word & (differences < 0))
        is_shown &= ~(is_word & (coverage <= MIN_COVERAGE)) if of_names else True
        places, found = np.flatnonzero(is_shown), dict[str, Contrast]()
        for i in places[np.argsort(-(np.abs(differences) * coverage)[places], kind="stable")]:
            value, overall, difference = (float(x[i]) for x in (self.means[label], self.overall, differences))
            what = (self.columns[i], self.kinds[i], self.levels[i])
            unit = self.units.get(self.columns[i], "")
            one = Contrast(*what, value, overall, difference, float(coverage[i]), unit)
            first = found.get(one.column)
            if first is None and len(found) == n_contrasts:
                break
            if first is None:
                found[one.column] = one
            elif of_names and one.kind == "text" and one.score >= CLEAR and str(first.level).count("/") < 2:
                found[one.column] = first._replace(level=f"{first.level}/{one.level}")
        return list(found.values())

    def leading_terms(self, label: int) -> Terms:
        """Return the leading terms of a cluster in all texts, the highest-ranked first."""
        texts = [self.terms[name] for name in self.terms if name not in self.left_out]
        terms = [pair for of_column in texts for pair in of_column[label]]
        return sorted(terms, key=lambda pair: -pair[1])[:MAX_TERMS]

    def names(self) -> list[str | None]:
        """Return a name for each cluster: its largest contrasts or its terms, and what tells equal names apart."""
        is_of_texts = all(kind == "text" or column in self.left_out for column, kind in zip(self.columns, self.kinds))
        parts = [
            _name_parts(self.leading_terms(k), [] if is_of_texts else self.contrasts(k, MAX_PHRASES, of_names=True))
            for k in range(len(self.means))
        ]
        names = [name_cluster(one) for one in parts]
        for name in {name for name in names if name is not None and names.count(name) > 1}:
            places = [k for k in range(len(names)) if names[k] == name]
            for k in places:
                names[k] = name_cluster(parts[k], [parts[other] for other in places if other != k])
        return names

    def evidence(self, entries: np.ndarray, label: int, rival: int | None) -> list[tuple[str, float]]:
        """Return by how much each column of a row speaks for a cluster against another one, the largest first.

        It is the sum of (x - m_rival)² - (x - m_label)² over the entries of the column, divided by that of their
        variances; NaN counts as 0. Without a rival, the row is compared with the means of all rows. Columns by which
        rows were not compared are left out.
        """
        other = self.overall if rival is None else self.means[rival]
        parts = np.nan_to_num((entries - other) ** 2 - (entries - self.means[label]) ** 2)
        places: dict[str, list[int]] = {}
        for i, column in enumerate(self.columns):
            places.setdefault(column, []).append(i)
        sums = {name: parts[at].sum() / (self.scales[at] ** 2).sum() for name, at in places.items()}
        evidence = [(name, float(value)) for name, value in sums.items() if name not in self.left_out]
        return sorted(evidence, key=lambda pair: -abs(pair[1]))

    def cells_of(self, entries: np.ndarray) -> dict[str, str]:
        """Return the cells of a row in words: numbers with their units, words of a category, known terms of a text."""
        cells: dict[str, str] = {}
        for column, kind, level, value in zip(self.columns, self.kinds, self.levels, entries):
            if level is None and not np.isnan(value):
                cells[column] = format_value(float(value), kind, self.units.get(column, ""))
            elif level is not None and value > 0:
                cells[column] = f"{cells[column]}/{level}" if column in cells else level
        return cells

    def with_rows(self, entries: Any, labels: np.ndarray, n_clusters: int) -> Profiles:
        """Return the profiles with more rows, of entries (r, m), in perhaps more clusters; terms stay as they are."""
        added = n_clusters - len(self.means)
        means = np.concatenate([self.means, np.tile(self.overall, (added, 1))])
        counts = np.insert(self.counts, [len(self.means)] * added, 0.0, axis=0)
        above = np.concatenate([means * 0 if self.above is None else self.above, np.zeros((added, means.shape[1]))])
        new = _Moments.of(entries, labels, n_clusters)
        before = _Moments(counts, np.vstack([means, self.overall]), self.scales**2, above[: len(means)])
        terms = {name: [*of_column, *([] for _ in range(added))] for name, of_column in self.terms.items()}
        grown = self._with_moments(new.joined_with(before), terms)
        kept = None if self.entries is None or sp.issparse(entries) else np.vstack([self.entries, _compact(entries)])
        return grown._replace(entries=kept, above=None if self.above is None else grown.above)

    def regrouped(self, labels: np.ndarray, n_clusters: int) -> Profiles:
        """Return the profiles of the rows that are kept in other clusters; terms have their shares only."""
        assert self.entries is not None
        moments = _Moments.of(self.entries.astype(np.float64), labels[: len(self.entries)], n_clusters)
        return self._with_moments(moments, {})

    def _with_moments(self, moments: _Moments, terms: dict[str, list[Terms]]) -> Profiles:
        profiles = _profiles(self.columns, self.kinds, self.levels, moments, terms)
        return profiles._replace(left_out=self.left_out, units=self.units, entries=self.entries)

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


def _name_parts(terms: Terms, contrasts: Sequence[Contrast]) -> list[str]:
    """Return what a cluster can be called after, the best first: clear contrasts, or terms, or else weak contrasts."""
    clear = [one.phrase for one in contrasts if one.score >= CLEAR]
    if terms and not clear:  # three of them are a name
        words = [term for term, _ in terms]
        return [", ".join(words[:2]), *words[2:]]
    return clear or [one.phrase for one in contrasts if one.score >= WEAK]


def name_cluster(parts: Sequence[str], namesakes: Sequence[Sequence[str]] = ()) -> str | None:
    """Return a name from the first parts; among namesakes, from the first one and one that none of these has.

    Examples
    --------
    >>> name_cluster(["high age", "low income", "plan = pro"])
    'high age, low income'
    >>> name_cluster(["high age", "low income", "plan = pro"], [["high age", "low income", "low visits"]])
    'high age, plan = pro'
    """
    known = {part for other in namesakes for part in other}
    own = [part for part in parts if part not in known] if namesakes else []
    return ", ".join([*parts[:1], *own[:1]] if own else parts[:2]) or None


# ---------------------------------------------------------------------------------------------------- from the columns


def profile_rows(
    X: Any, labels: np.ndarray, n_clusters: int, names: Iterable[str] | None = None, weights: np.ndarray | None = None
) -> Profiles:
    """Return the profiles of an array or sparse matrix of finite numbers; a label is -1 for rows without a cluster."""
    columns = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names]
    kinds, levels = ["number"] * len(columns), [None] * len(columns)
    profiles = _profiles(columns, kinds, levels, _Moments.of(X, labels, n_clusters, weights), {})
    is_kept = names is not None and not sp.issparse(X) and 0 < X.size <= MAX_KEPT
    return profiles._replace(entries=_compact(X)) if is_kept else profiles


def profile_table(
    columns: Sequence[Column],
    labels: np.ndarray,
    n_clusters: int,
    used: Collection[str] | None = None,
    weights: np.ndarray | None = None,
) -> Profiles:
    """Return the profiles of the columns of a table, also of those not ``used``; ids, constants, vectors have none."""
    names: list[tuple[str, str, str | None]] = []
    values: list[np.ndarray] = []
    terms = {}
    for column in columns:
        entries = column_entries(column)
        if column.kind == "text":
            terms[column.name], entries = _text_entries(column, labels, n_clusters)
        names += [(column.name, column.kind, level) for level, _ in entries]
        values += [one for _, one in entries]
    parts = [_Moments.of(one[:, None], labels, n_clusters, weights) for one in values]
    titles, kinds, levels = (list(part) for part in zip(*names)) if names else ([], [], [])
    left_out = [] if used is None else [name for name in {*titles, *terms} if name not in used]
    profiles = _profiles(titles, kinds, levels, _Moments.side_by_side(parts, n_clusters), terms)
    units = {one.name: unit for one in columns if (unit := one.values.unit or one.values.symbol)}
    is_small = 0 < len(values) * len(labels) <= MAX_KEPT
    kept = _compact(np.column_stack(values)) if is_small else None
    return profiles._replace(left_out=tuple(sorted(left_out)), units=units, entries=kept)


def _compact(entries: np.ndarray) -> np.ndarray:
    """Return entries in single precision, which is enough to show and compare them."""
    largest = float(np.finfo(np.float32).max)
    return np.clip(entries, -largest, largest).astype(np.float32)


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


def _text_entries(
    column: Column, labels: np.ndarray, n_clusters: int
) -> tuple[list[Terms], list[tuple[str | None, np.ndarray]]]:
    """Return the leading terms of each cluster, and for the first of them whether each text contains it."""
    counts, vocabulary = _count_terms(column.values.cells)
    terms = matrix_terms(counts, labels, n_clusters, vocabulary)
    first = sorted((pair for of_cluster in terms for pair in of_cluster[:NAMED_TERMS]), key=lambda pair: -pair[1])
    levels = list(dict.fromkeys(term for term, _ in first))[:MAX_LEVELS]
    places = {term: place for place, term in enumerate(vocabulary)}
    contained = (counts[:, [places[term] for term in levels]].toarray() > 0).astype(np.float64)
    contained[column.values.is_missing] = np.nan
    return terms, list(zip(levels, contained.T))


def terms_in_texts(texts: Sequence[str | None], terms: Sequence[str]) -> np.ndarray:
    """Return whether each text contains each term, of shape (n, n_terms); NaN for missing texts."""
    vectorizer = DocumentVectorizer(stop_words=None).fit([" ".join(terms)])
    places = [vectorizer.vocabulary_[term] for term in terms]
    contained = (vectorizer.counts([text or "" for text in texts])[:, places].toarray() > 0).astype(np.float64)
    contained[[text is None for text in texts]] = np.nan
    return contained


def text_terms(texts: Sequence[str | None], labels: np.ndarray, n_clusters: int) -> list[Terms]:
    """Return the leading terms of each cluster."""
    counts, vocabulary = _count_terms(texts)
    return matrix_terms(counts, labels, n_clusters, vocabulary)


def _count_terms(texts: Iterable[str | None]) -> tuple[sp.csr_array, list[str]]:
    """Return how often each term is in each text, and the terms; there may be none."""
    documents = [text or "" for text in texts]
    try:
        with ignore_warnings(FiedlerWarning):  # documents without terms are expected here
            vectorizer = DocumentVectorizer().fit(documents)
    except ValueError:  # no document has a term
        return sp.csr_array((len(documents), 0)), []
    return vectorizer.counts(documents), vectorizer.get_feature_names_out().tolist()


def matrix_terms(counts: Any, labels: np.ndarray, n_clusters: int, vocabulary: Sequence[str]) -> list[Terms]:
    """Return the leading terms of each cluster from counts of terms."""
    found: list[Terms] = [[] for _ in range(n_clusters)]
    if not len(vocabulary):
        return found
    for description in describe_clusters(counts, labels, list(vocabulary), n_terms=MAX_TERMS):
        found[int(description.cluster)] = description.terms
    return found


# ------------------------------------------------------------------------------------------------------------- moments


class _Moments(NamedTuple):
    """Counts and means of entries in each cluster and, in the last line, of all rows, and variances of all rows."""

    counts: np.ndarray  # (n_clusters + 1, m)
    means: np.ndarray  # (n_clusters + 1, m), 0 without values
    variances: np.ndarray  # (m,)
    above: np.ndarray  # (n_clusters, m), share of the values above the mean of all rows

    @classmethod
    def of(cls, X: Any, labels: np.ndarray, n_clusters: int, weights: np.ndarray | None = None) -> _Moments:
        """Compute the moments of rows of numbers, of which NaN is left out, block by block."""
        n, m = X.shape
        weights = np.ones(n) if weights is None else weights
        groups = np.where(labels >= 0, labels, n_clusters)  # rows without a cluster only count among all rows
        center = _mean_of_columns(X, weights)
        counts, sums, above = (np.zeros((n_clusters + 1, m)) for _ in range(3))
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
                above += _count_above(part, members, present, center)
                # Σ w (x - c)² = Σ w x² - 2c Σ w x + c² Σ w
                total = weights[block].sum()
                squares += weights[block] @ part.power(2) - 2 * center * (weights[block] @ part) + center**2 * total
                continue
            is_present = ~np.isnan(X[block])
            centred = np.where(is_present, X[block] - center, 0.0)
            counts += members @ is_present.astype(np.float64)
            above += members @ (centred > ROUNDING * np.abs(center)).astype(np.float64)
            sums += members @ centred
            squares += weights[block] @ centred**2
        counts[-1], sums[-1] = counts.sum(axis=0), sums.sum(axis=0)
        safe = np.maximum(counts, np.finfo(float).tiny)
        means = np.where(counts > 0, center + sums / safe, 0.0)
        return cls(counts, means, squares / safe[-1] - (sums[-1] / safe[-1]) ** 2, (above / safe)[:-1])

    @classmethod
    def side_by_side(cls, parts: Sequence[_Moments], n_clusters: int) -> _Moments:
        """Return the moments of all columns."""
        shapes = ((n_clusters + 1, 0), (n_clusters + 1, 0), (0,), (n_clusters, 0))
        nothing = cls._make(np.zeros(shape) for shape in shapes)
        return cls(*(np.concatenate(arrays, axis=-1) for arrays in zip(nothing, *parts)))

    def joined_with(self, other: _Moments) -> _Moments:
        """Return the moments of the rows of both [Chan, Golub & LeVeque 1983]."""
        counts = self.counts + other.counts
        share = self.counts / np.maximum(counts, np.finfo(float).tiny)
        means = other.means + share * (self.means - other.means)
        p, q = share[-1], 1 - share[-1]
        variances = p * self.variances + q * other.variances + p * q * (self.means[-1] - other.means[-1]) ** 2
        above = other.above + share[:-1] * (self.above - other.above)  # the means have moved a little
        return _Moments(counts, means, variances, above)


def _count_above(part: Any, members: Any, present: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Count the values of sparse rows above the center in every cluster."""
    part = sp.csr_array(part)
    is_zero_above = (center < 0).astype(np.float64)
    is_above = (part.data > center[part.indices]) - is_zero_above[part.indices]
    counted = sp.csr_array((is_above, part.indices, part.indptr), shape=part.shape)
    return (members @ counted).toarray() + present * is_zero_above


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
    scales = _scales(moments.variances, overall)
    means, overall = (np.where(np.abs(one) < ROUNDING * scales, 0.0, one) for one in (means, overall))
    return Profiles(columns, kinds, levels, overall, scales, means, moments.counts, terms, above=moments.above)


def _scales(variances: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return standard deviations, 1 for a column that is constant up to rounding."""
    return np.sqrt(np.where(variances > (ROUNDING * means) ** 2, variances, 1.0))

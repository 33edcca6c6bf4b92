"""Rows of a table as vectors whose Euclidean distances compare all columns alike.

Every column becomes one or more numbers of total variance 1, so that two rows differ by the same amount on average in
each column, whatever its unit and kind:

    number, date     (z - mean) / standard deviation, z being x within bounds, or its logarithm (:mod:`.numbers`)
    category         indicators of its frequent words, divided by √(1 - Σ p_j²), p_j being their frequencies
    text, vector     centred components, divided by the root of their total variance

The indicators z_j of a category take few values, so that rows with the same word are close together and those with
another one far away, whether or not the other columns o differ. They are therefore replaced by c E[z_j | z_o], what the
other columns of the row tell about the word: a category that is independent of them does not count, and one that
follows from them counts by c = `CATEGORY_SCALE`. The documentation of tables has the comparison behind this choice.
The rows with the indicators themselves are another view of the table, which :meth:`TableEncoder.indicators` returns.
Number columns of one unit are divided by the same number, the root of their mean variance.

Missing values are those expected from the other values of the row, under a Gaussian distribution of the encoded rows
that is estimated by EM (:mod:`fiedler.table.completion`). It is part of the model: new rows are completed in the same
way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int, choose, first_few
from ..core.fitting import restore_on_failure
from ..errors import InputError, NotConvergedWarning, shown, warn
from ..text import DocumentVectorizer
from .columns import Column, Requests, describe_plan, describe_spellings, format_plan, is_table, n_rows_of, plan_columns
from .completion import (
    GaussianOfRows,
    TableTransformer,
    fit_affordable,
    float_type,
    read_like_fit,
    sample_rows,
)
from .numbers import NumberScale, SuspiciousCell, fit_scale, share_a_unit, suspicious_cells
from .values import Values, read_values, standardize, to_objects

OTHER = "(other)"
MAX_STORED = 100  # suspicious cells in the fields of the warning
CATEGORY_SCALE = 0.5  # c


class ColumnEncoding(NamedTuple):
    """How a column becomes numbers; ``notation`` and ``unit`` are those of :class:`~fiedler.table.values.Values`."""

    name: str
    kind: str
    notation: str
    unit: str
    center: np.ndarray  # (width,)
    scale: float  # the divisor, which includes the weight of the column
    levels: list[str]  # the words of a category that have an indicator each
    has_other: bool  # whether the last indicator is that of all other words
    known: list[str]  # all words of a category; others are new
    vectorizer: Any  # DocumentVectorizer of a text, or None
    components: Any  # TruncatedSVD of a text, or None
    numbers: NumberScale = NumberScale()  # of a number or date
    joined: tuple[str, ...] = ()  # words of the fit that were taken for others, as the plan says

    @property
    def output_names(self) -> list[str]:
        """The names of the numbers."""
        if self.kind == "category":
            return [f"{self.name}={level}" for level in [*self.levels, *([OTHER] if self.has_other else [])]]
        width = len(self.center)
        return [self.name] if self.kind in ("number", "date") else [f"{self.name} {i}" for i in range(width)]

    def read(self, cells: Any) -> Values:
        """Read the cells of a new table as those of the fit were read."""
        if self.kind in ("category", "text"):
            values = read_values(cells, as_words=True)
            return values if self.kind == "text" else self._spell_like_fit(values)
        values = read_like_fit(self.name, self.kind, cells, self.notation, self.unit)
        if values.is_missing.all():
            return self.nothing(len(values.cells))
        if self.kind == "vector" and values.cells.shape[1] != len(self.center):
            widths = f"{values.cells.shape[1]} numbers instead of {len(self.center)}"
            problem = f"the vectors of column {self.name!r} have {widths}"
            raise InputError(problem, "use the vectors of the same model", code="wrong_n_features", column=self.name)
        return values

    def _spell_like_fit(self, values: Values) -> Values:
        """Replace words of a category that differ from one of the fit in capitals only, with a warning if new."""
        n_spellings = Counter(word.casefold() for word in self.known)
        spelling = {word.casefold(): word for word in self.known if n_spellings[word.casefold()] == 1}
        joined = {word: spelling[word.casefold()] for word in self.new_words(values) if word.casefold() in spelling}
        if not joined:
            return values
        if new := {word: other for word, other in joined.items() if word not in self.joined}:
            problem = f"column {self.name!r}: {describe_spellings(new)}"
            hint = "as_category, in the fit, keeps them apart"
            warn(problem, hint, code="joined_words", column=self.name, joined=new)
        return values._replace(cells=to_objects([joined.get(word, word) for word in values.cells]))

    def nothing(self, n: int) -> Values:
        """Return the values of a column that a table of n rows does not have."""
        if self.kind in ("category", "text"):
            return Values("words", np.full(n, None, dtype=object))
        return Values("numbers", np.full((n, len(self.center)), np.nan))

    def encode(self, values: Values) -> np.ndarray:
        """Return the numbers of all cells, of shape (n, width); NaN where a cell is missing."""
        n, width = len(values.cells), len(self.center)
        if self.kind == "category":
            raw = self._indicators(values)
        elif self.kind == "text":
            raw, present = np.full((n, width), np.nan), np.flatnonzero(~values.is_missing)
            if len(present):
                raw[present] = self.components.transform(self.vectorizer.transform(values.cells[present]))
        elif self.kind == "vector":
            raw = values.cells.reshape(n, width)
        else:
            raw = self.numbers.apply(values.cells).reshape(n, width)
        return standardize(raw, self.center, self.scale, f"column {self.name!r}")

    def _indicators(self, values: Values) -> np.ndarray:
        position = {level: j for j, level in enumerate(self.levels)}
        other = len(self.levels) if self.has_other else -1
        position |= {word: other for word in self.known if word not in position}
        unknown = len(position)
        codes = np.array([position.get(word, unknown) for word in values.cells], dtype=np.intp)
        known = np.flatnonzero(codes < unknown)
        indicators = np.full((len(codes), len(self.center)), np.nan)
        indicators[known] = 0.0
        indicators[known, codes[known]] = 1.0
        return indicators

    def new_words(self, values: Values) -> list[str]:
        """Return the words of a category that did not occur when it was fitted."""
        return sorted({word for word in values.cells if word is not None} - set(self.known))


def fit_column(
    column: Column,
    max_levels: int,
    n_text_components: int,
    numbers: NumberScale,
    divisor: Callable[[np.ndarray], float],
) -> ColumnEncoding:
    """Fit the encoding of a column."""
    values = column.values
    about = (column.name, column.kind, values.notation, values.unit)
    encoding = ColumnEncoding(*about, np.zeros(1), 1.0, [], False, [], None, None, numbers)
    if column.kind == "category":
        words, counts = np.unique([word for word in values.cells if word is not None], return_counts=True)
        known = words.tolist()
        frequent = np.argsort(-counts, kind="stable")[:max_levels] if len(words) > max_levels + 1 else range(len(words))
        levels = sorted(known[j] for j in frequent)
        has_other = len(levels) < len(known)
        width = len(levels) + has_other
        encoding = encoding._replace(center=np.zeros(width), levels=levels, has_other=has_other, known=known)
        encoding = encoding._replace(joined=values.joined)
    elif column.kind == "vector":
        encoding = encoding._replace(center=np.zeros(values.cells.shape[1]))
    elif column.kind == "text":
        vectorizer = DocumentVectorizer("tfidf")
        terms = vectorizer.fit_transform(values.cells[~values.is_missing])
        width = max(1, min(n_text_components, min(terms.shape) - 1))
        components = TruncatedSVD(width, random_state=0).fit(terms)
        encoding = encoding._replace(center=np.zeros(width), vectorizer=vectorizer, components=components)
    raw = encoding.encode(values)
    of_column = divisor if column.kind in ("number", "date") else _spread
    return encoding._replace(center=np.nanmean(raw, axis=0), scale=of_column(raw) or 1.0)


def _spread(raw: np.ndarray) -> float:
    """Return the root of the sum of the variances, of values whose squares may overflow or vanish."""
    largest = float(np.nanmax(np.abs(raw), initial=0.0))
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of two, so that the quotients are exact
    return unit * float(np.nanvar(raw / unit, axis=0).sum()) ** 0.5


def smoothing_matrix(gaussian: GaussianOfRows, encodings: Sequence[ColumnEncoding]) -> np.ndarray | None:
    """Return the matrix that replaces z_j by c E[z_j | z_o] for categories j, and leaves other columns as they are.

    With P = Σ⁻¹, E[z_j | z_o] = -P_jj⁻¹ P_jo z_o for centred rows. None if rows stay as they are: without categories,
    with nothing but one, and where the table is too wide for Σ.
    """
    has_categories = any(encoding.kind == "category" for encoding in encodings)
    if len(encodings) == 1 or not has_categories or not gaussian.covariance.size:
        return None
    matrix = np.eye(len(gaussian.mean))
    precision, starts = np.linalg.inv(gaussian.covariance), np.cumsum([0, *(len(one.center) for one in encodings)])
    for encoding, start, stop in zip(encodings, starts[:-1], starts[1:]):
        if encoding.kind == "category":
            block = slice(start, stop)
            matrix[:, block] = -CATEGORY_SCALE * np.linalg.solve(precision[block, block], precision[block]).T
            matrix[block, block] = 0
    return matrix


# ---------------------------------------------------------------------------------------------- the scales of numbers

DIVISORS: dict[str, Callable[[np.ndarray], float]] = {
    "auto": _spread,
    "standard": _spread,
    "range": lambda raw: float(np.nanmax(raw) - np.nanmin(raw)),
    "none": lambda raw: 1.0,
}


def fit_scales(columns: Sequence[Column], scale: str) -> tuple[dict[str, NumberScale], set[str]]:
    """Return the scales of numbers and dates by column, and the columns of numbers that share a unit."""
    if scale != "auto":
        return {}, set()
    numbers = [one for one in columns if one.kind == "number"]
    shares = share_a_unit([one.values.cells for one in numbers])
    shared = {one.name for one, is_shared in zip(numbers, shares) if is_shared}
    has_logarithms = {one.name for one in numbers} - shared
    scaled = [one for one in columns if one.kind in ("number", "date")]
    return {one.name: fit_scale(one.values.cells, one.name in has_logarithms) for one in scaled}, shared


def divide_alike(encodings: Sequence[ColumnEncoding], shared: set[str]) -> list[ColumnEncoding]:
    """Give the columns of one unit the same divisor, the root of their mean variance."""
    scales = np.array([encoding.scale for encoding in encodings if encoding.name in shared])
    common = float(scales.max() * np.mean((scales / scales.max()) ** 2) ** 0.5) if len(scales) else 1.0
    return [one._replace(scale=common) if one.name in shared else one for one in encodings]


def weigh(encoding: ColumnEncoding, weight: float) -> ColumnEncoding:
    """Return the encoding of a column that counts more or less than the others."""
    return encoding._replace(scale=encoding.scale / float(weight))


def far_cells(encodings: Sequence[ColumnEncoding], values: Sequence[Values]) -> list[SuspiciousCell]:
    """Return the numbers and dates that are far from all others of their column in the fit."""
    scaled = [(one, cells.cells) for one, cells in zip(encodings, values) if one.kind in ("number", "date")]
    return [far for one, x in scaled for far in suspicious_cells(one.name, x.ravel(), one.numbers, one.kind)]


def warn_about_cells(cells: Sequence[SuspiciousCell], others: str, counted_as: str) -> None:
    """Warn about suspicious cells, which count as the most extreme usual ones."""
    if cells:
        problem = f"{len(cells)} cell(s) are far from {others}: {first_few([str(cell) for cell in cells])}"
        hint = f"each counts as the most extreme {counted_as}; correct or empty those that are mistakes"
        about = [list(cell) for cell in cells[:MAX_STORED]]
        warn(problem, hint, code="suspicious_cells", stacklevel=4, cells=about)


def describe_scale(column: Column, scale: NumberScale | None, shared: set[str]) -> Column:
    """Add how numbers are scaled to the reason of a column, where that is not obvious."""
    notes = ["similar ranges, one scale"] * (column.name in shared) + ["logarithms"] * bool(scale and scale.unit)
    return column._replace(reason=", ".join(filter(None, [column.reason, *notes])))


# -------------------------------------------------------------------------------------------------------- the encoder


class EncodedTable(NamedTuple):
    """The rows of a table that an encoder was fitted to."""

    encoder: TableEncoder
    plan: Sequence[Column]
    rows: np.ndarray  # (n, d), as :meth:`TableEncoder.transform` returns them
    indicators: np.ndarray | None  # the same with the indicators of categories; None where they do not differ


class TableEncoder(TableTransformer):
    """Turn the rows of a table with columns of any kind into vectors.

    Numbers, dates, categories, free text and vectors are recognised, and each column gets the same weight. Columns that
    name the rows, and those with a single value, are left out. Missing values are estimated from the others of the row.

    Parameters
    ----------
    drop : sequence of str
        Columns to leave out.
    as_category, as_number, as_text : sequence of str
        Columns that are taken for a category, with words as they are written, for numbers or for free text whatever
        they look like.
    weight : dict of str to float, optional
        Factors of the columns that count more or less than the others.
    max_levels : int, default=30
        The number of words of a category, the most frequent ones, with an indicator each; the others share one.
    n_text_components : int, default=20
        The number of components of a text.
    scale : {'auto', 'standard', 'range', 'none'}, default='auto'
        What the columns of numbers are divided by: 'standard' deviations, 'range' or 'none' for nothing. With 'auto'
        they are divided by standard deviations, or all by the same number if they have one unit, as the pixels of
        images do; skewed columns become logarithms, and cells that are far from all others count as the most extreme
        usual value.

    Attributes
    ----------
    encodings_ : list of ColumnEncoding
        The columns that are used.
    plan_ : str
        How each column is used, a line for each.
    columns_ : list of (str, str, str)
        The same as the name of each column, its use, and why.
    uses_ : dict of str to str
        What each column is used as; ``"left out: ..."`` for those that are not.
    gaussian_ : GaussianOfRows
        The distribution by which missing values, and the indicators of categories, are estimated.
    smoothing_ : ndarray of shape (d, d) or None
        The matrix by which completed rows, minus their mean, are multiplied; None for rows that stay as they are.
    suspicious_ : list of SuspiciousCell
        Numbers and dates that are far from all others of their column: its name, the row, the value and the distance.
    history_ : FitHistory
        The objective of its estimation per iteration.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, of a data frame.

    Notes
    -----
    skrub's TableVectorizer does a similar job. Its output has another scale for every column, missing values are left
    to the next step, and its objects cannot be part of a model file that loads without running code.

    Examples
    --------
    >>> from fiedler.io import TableEncoder
    >>> table = {"age": [30, 40, None, 50], "plan": ["basic", "pro", "pro", "basic"], "country": ["IT"] * 4}
    >>> encoder = TableEncoder().fit(table)
    >>> print(encoder.plan_)
    age      number    1 missing
    plan     category  2 different values
    country  left out  constant: all values are equal
    >>> encoder.transform(table).shape
    (4, 3)
    """

    def __init__(
        self,
        *,
        drop: Sequence[str] = (),
        as_category: Sequence[str] = (),
        as_number: Sequence[str] = (),
        as_text: Sequence[str] = (),
        weight: Mapping[str, float] | None = None,
        max_levels: int = 30,
        n_text_components: int = 20,
        scale: Literal["auto", "standard", "range", "none"] = "auto",
    ) -> None:
        self.drop = drop
        self.as_category = as_category
        self.as_number = as_number
        self.as_text = as_text
        self.weight = weight
        self.max_levels = max_levels
        self.n_text_components = n_text_components
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> Self:
        """Recognise the columns of a table and fit their encodings.

        Parameters
        ----------
        X : data frame of pandas, polars or pyarrow, dict of columns, or array of shape (n, d)
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit to a table and return its rows as vectors of shape (n, d)."""
        return self.fit_columns(X, self.read(X)).rows

    def read(self, X: Any) -> list[Column]:
        """Return the columns of a table with their cells, and how each is used."""
        cells = self._read_table(X)
        return plan_columns(cells, self._requests(X, cells))

    def fit_columns(self, X: Any, columns: Sequence[Column]) -> EncodedTable:
        """Fit to the columns of a table, which :meth:`read` has returned, and encode its rows."""
        choose(DIVISORS, self.scale, option="scale")
        max_levels = check_int(self.max_levels, "max_levels", minimum=2)
        n_components = check_int(self.n_text_components, "n_text_components")
        weights = dict(self.weight or {})
        used = [column for column in columns if column.is_used]
        scales, shared = fit_scales(used, self.scale)
        encodings = [
            fit_column(one, max_levels, n_components, scales.get(one.name, NumberScale()), DIVISORS[self.scale])
            for one in used
        ]
        encodings = [weigh(one, weights.get(one.name, 1.0)) for one in divide_alike(encodings, shared)]
        rows = np.concatenate([encoding.encode(one.values) for encoding, one in zip(encodings, used)], axis=1)
        result = fit_affordable(rows[sample_rows(rows)])
        n_iter = len(result.history.objective)
        if not result.converged:
            problem = f"the estimation of missing values did not converge within {n_iter} iterations"
            hint = "leave out columns of which most values are missing, or vectors"
            warn(problem, hint, code="not_converged", category=NotConvergedWarning, stacklevel=3, max_iter=n_iter)
        with restore_on_failure(self):
            self.encodings_ = encodings
            described = [describe_scale(one, scales.get(one.name), shared) for one in columns]
            self.plan_, self.columns_ = format_plan(described), describe_plan(described)
            self.uses_ = {one.name: one.kind if one.is_used else f"left out: {one.reason}" for one in columns}
            self.gaussian_, self.history_ = result.gaussian, result.history
            self.n_iter_, self.converged_ = n_iter, result.converged
            self.smoothing_ = smoothing_matrix(result.gaussian, encodings)
            self.suspicious_ = far_cells(encodings, [one.values for one in used])
            self._set_names(X, [column.name for column in columns])
        warn_about_cells(self.suspicious_, "all others of their column", "usual value")
        dtype = float_type(X)
        indicators = result.gaussian.fill(rows).astype(dtype, copy=False)
        if self.smoothing_ is None:
            return EncodedTable(self, columns, indicators, None)
        return EncodedTable(self, columns, self._smooth(indicators).astype(dtype, copy=False), indicators)

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows of a table as vectors.

        Parameters
        ----------
        X : as in :meth:`fit`
            Columns are found by name. Columns that lack, and words of categories that are new, count as missing, with a
            warning.

        Returns
        -------
        ndarray of shape (n, d)
        """
        check_is_fitted(self)
        return self._smooth(self._encode(X)).astype(float_type(X), copy=False)

    def indicators(self, X: Any) -> np.ndarray:
        """Return the rows of a table with the indicators of its categories, as :class:`EncodedTable` has them."""
        check_is_fitted(self)
        return self._encode(X).astype(float_type(X), copy=False)

    def complete(self, X: Any) -> np.ndarray:
        """Return the rows of a table in the units of their columns, with estimates where values are missing.

        The columns are those of :meth:`get_feature_names_out`; the indicators of categories are 0 and 1.
        """
        check_is_fitted(self)
        return self.decode(self._encode(X))

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """Return rows, as :meth:`indicators` makes them, in the units of their columns."""
        center = np.concatenate([encoding.center for encoding in self.encodings_])
        scale = np.concatenate([np.full(len(encoding.center), encoding.scale) for encoding in self.encodings_])
        rows = rows * scale + center
        starts = np.cumsum([0, *(len(encoding.center) for encoding in self.encodings_)])
        for encoding, start in zip(self.encodings_, starts):
            if encoding.numbers.unit:
                rows[:, start] = encoding.numbers.invert(rows[:, start])
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the numbers that rows consist of."""
        check_is_fitted(self)
        return np.array([name for encoding in self.encodings_ for name in encoding.output_names], dtype=object)

    # ------------------------------------------------------------------------------------------------------- the parts

    def _encode(self, X: Any) -> np.ndarray:
        """Return the encoded rows with estimates where values are missing."""
        encodings = self.encodings_
        names = [encoding.name for encoding in encodings]
        cells = self._read_new(X, names, "its values are estimated from the other columns")
        if hasattr(self, "feature_names_in_") and not is_table(X):
            problem = "X does not have valid feature names, but TableEncoder was fitted with feature names"
            warn(problem, "its columns are taken in the order of the fit", code="no_feature_names")
        n = n_rows_of(cells)
        values = [one.read(cells[one.name]) if one.name in cells else one.nothing(n) for one in encodings]
        pairs = list(zip(encodings, values))
        categories = [(encoding, one) for encoding, one in pairs if encoding.kind == "category"]
        new = {encoding.name: words for encoding, one in categories if (words := encoding.new_words(one))}
        if new:
            listed = "; ".join(f"{name!r}: {first_few([repr(word) for word in words])}" for name, words in new.items())
            problem = f"there are values that did not occur before, in column {listed}"
            warn(problem, "they count as missing", code="new_categories", columns=new)
        warn_about_cells(far_cells(encodings, values), "those of the fit", "usual value of the fit")
        return self.gaussian_.fill(np.concatenate([encoding.encode(one) for encoding, one in pairs], axis=1))

    def _smooth(self, rows: np.ndarray) -> np.ndarray:
        """Replace the indicators of categories by what the other columns tell about them."""
        return rows if self.smoothing_ is None else (rows - self.gaussian_.mean) @ self.smoothing_

    def _requests(self, X: Any, cells: Mapping[str, Any]) -> Requests:
        """Return what was asked; the columns of an array of numbers are numbers."""
        drop, category, number, text = (
            _names(getattr(self, name), name) for name in ("drop", "as_category", "as_number", "as_text")
        )
        if not is_table(X) and all(column.dtype.kind in "biuf" for column in cells.values()):
            number = tuple(name for name in cells if name not in {*drop, *category, *text})
        if not isinstance(self.weight, Mapping | None):
            problem = f"weight must be a dictionary from names of columns to numbers; got {shown(self.weight)}"
            raise InputError(problem, code="invalid_parameter", parameter="weight", value=self.weight)
        return Requests(drop, category, number, text, dict(self.weight or {}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


def _names(given: Sequence[str], parameter: str) -> tuple[str, ...]:
    """Return names of columns; a single string is a mistake."""
    if isinstance(given, str) or not isinstance(given, Iterable) or not all(isinstance(name, str) for name in given):
        problem = f"{parameter} must be a list of names of columns; got {shown(given)}"
        hint = f"pass [{shown(given)}]" if isinstance(given, str) else "pass a list of strings, such as ['id']"
        raise InputError(problem, hint, code="invalid_parameter", parameter=parameter, value=given)
    return tuple(given)

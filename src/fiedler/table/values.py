"""The cells of a column as one of a few types, whatever file or data frame they come from.

A column becomes numbers (NaN where missing), dates (days since 1970), words (None where missing) or vectors. Cells that
are text, as all of a CSV file are, become numbers or dates if every one of them can be read as such.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

MISSING = {"", "na", "n/a", "nan", "null", "<na>", "nat", "?", "#n/a"}  # words for a missing value, in lower case
CURRENCY = " \u00a0\u202f€$£¥%"  # signs around a number
MAX_SHOWN = 3  # mistakes of a column that a message shows
MAX_CODES = 20  # different cells of a column in which numbers and words together are the names of categories
MOSTLY = 0.9  # share of the cells that look like numbers or dates, above which the others are taken for mistakes
SECONDS_PER_DAY = 86_400.0

ValueType = Literal["numbers", "dates", "words", "vectors"]

PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}([. \u00a0\u202f']\d{3})+)(,\d+)?", re.ASCII)
THOUSANDS_COMMA = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
DATE_FORMATS = {
    "day.month.year": ("%d.%m.%Y", "%d.%m.%y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"),
    "month/day/year": ("%m/%d/%Y", "%m/%d/%y", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S"),
    "day/month/year": ("%d/%m/%Y", "%d/%m/%y", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S"),
    "day-month-year": ("%d-%m-%Y", "%d-%b-%Y", "%d %b %Y", "%d %B %Y"),
}


class Values(NamedTuple):
    """The cells of a column.

    Attributes
    ----------
    type : {'numbers', 'dates', 'words', 'vectors'}
    cells : ndarray
        Of shape (n,): float64 with NaN for numbers and days, objects with None for words; of shape (n, width) for
        vectors, rows of NaN where missing.
    how : str
        How the cells were read, if that is not obvious, such as 'with a decimal comma'.
    mistakes : tuple of int
        The first rows whose cells are not numbers (or dates), although most others are.
    n_mistakes : int
        The number of all such rows.
    """

    type: ValueType
    cells: np.ndarray
    how: str = ""
    mistakes: tuple[int, ...] = ()
    n_mistakes: int = 0

    @property
    def is_missing(self) -> np.ndarray:
        """Which cells are missing."""
        if self.type == "words":
            return np.array([cell is None for cell in self.cells], dtype=bool)
        return np.isnan(self.cells if self.cells.ndim == 1 else self.cells[:, 0])


def read_values(
    cells: Any, *, as_words: bool = False, expected: ValueType | None = None, how: str | None = None
) -> Values:
    """Recognise the type of the cells of a column.

    Parameters
    ----------
    cells : ndarray or sequence
        Numbers, dates, strings, sequences of numbers, or a mixture; None, NaN and words such as "NA" are missing.
    as_words : bool
        Whether to take strings as they are, even if they look like numbers.
    expected, how : str, optional
        The type of the cells of another table, and how they were read, so that those of this one are read in the same
        way; strings that cannot be are mistakes.

    Examples
    --------
    >>> read_values(["1,5", "", "20"]).cells
    array([ 1.5,  nan, 20. ])
    >>> read_values(["2024-03-01", "2024-03-02"]).type
    'dates'
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf" and cells.ndim == 1 and not as_words:
        return _numbers("numbers", cells.astype(np.float64))
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return Values("dates", _days(cells))
    listed = [None if is_missing(cell) else cell for cell in cells]
    present = [cell for cell in listed if cell is not None]
    if present and all(isinstance(cell, list | tuple | np.ndarray) for cell in present):
        return _vectors(listed)
    if not as_words:
        for kinds, type_, convert in NATIVE:
            if all(isinstance(cell, kinds) and not isinstance(cell, bool | np.bool_) for cell in present) and present:
                return _numbers(type_, _converted(listed, convert))
    words = [None if cell is None else to_word(cell) for cell in listed]
    return Values("words", _objects(words)) if as_words else _parse(words, expected, how)


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty, NaN, or a word for a missing value."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    if cell is None or isinstance(cell, list | tuple | np.ndarray):
        return cell is None
    return bool(cell != cell) if isinstance(cell, Real | Decimal) else str(cell) in ("NaT", "<NA>")


def to_word(cell: Any) -> str:
    """Return a cell as text; whole numbers have no decimal point, and equal values the same text in all files.

    Examples
    --------
    >>> to_word(3.0), to_word(True), to_word(" Rome ")
    ('3', 'true', 'Rome')
    """
    if isinstance(cell, bool | np.bool_):
        return str(cell).lower()
    is_whole = isinstance(cell, float | np.floating) and float(cell).is_integer()
    word = str(int(cell)) if is_whole else " ".join(str(cell).split())
    return word.lower() if word in ("True", "False", "TRUE", "FALSE") else word


# ----------------------------------------------------------------------------------------------- values of other types


def _numbers(type_: ValueType, numbers: np.ndarray) -> Values:
    """Return numbers, of which infinite ones are mistakes."""
    infinite = np.flatnonzero(np.isinf(numbers))
    return Values(type_, numbers, "", tuple(infinite[:MAX_SHOWN].tolist()), len(infinite))


def _days(dates: np.ndarray) -> np.ndarray:
    microseconds = dates.astype("datetime64[us]")
    days = microseconds.astype(np.int64) / (1e6 * SECONDS_PER_DAY)
    return np.where(np.isnat(microseconds), np.nan, days)


def _day(when: date) -> float:
    if not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day)
    return (when.replace(tzinfo=None) - (when.utcoffset() or timedelta()) - datetime(1970, 1, 1)) / timedelta(days=1)


def _seconds(clock: time) -> float:
    return clock.hour * 3600 + clock.minute * 60 + clock.second + clock.microsecond / 1e6


NATIVE: tuple[tuple[Any, ValueType, Callable[[Any], float]], ...] = (
    ((Real, Decimal), "numbers", float),
    (date, "dates", _day),
    (time, "numbers", _seconds),
    (timedelta, "numbers", timedelta.total_seconds),
)


def _converted(cells: Iterable[Any], convert: Callable[[Any], float]) -> np.ndarray:
    return np.array([math.nan if cell is None else convert(cell) for cell in cells], dtype=np.float64)


def _objects(words: Sequence[str | None]) -> np.ndarray:
    cells = np.empty(len(words), dtype=object)
    cells[:] = words
    return cells


def _vectors(cells: Sequence[Any]) -> Values:
    widths = {len(cell) for cell in cells if cell is not None}
    if len(widths) > 1:  # lists of different lengths are not vectors: tags, for example
        return Values("words", _objects([None if cell is None else ", ".join(map(to_word, cell)) for cell in cells]))
    (width,) = widths
    blank = [math.nan] * width
    try:
        return Values("vectors", np.array([blank if cell is None else cell for cell in cells], dtype=np.float64))
    except (ValueError, TypeError):
        return Values("words", _objects([None if cell is None else ", ".join(map(to_word, cell)) for cell in cells]))


# -------------------------------------------------------------------------------------------------- words that are read


def _parse(words: Sequence[str | None], expected: ValueType | None, how: str | None) -> Values:
    """Read words as numbers or dates if all of them, or most, can be read in the same way."""
    distinct = sorted({word for word in words if word is not None})
    best: tuple[int, Values | None, dict[str, float]] = (0, None, {})
    for type_, name, read in READERS:
        if expected is not None and (type_ != expected or name not in ("", how)):
            continue
        found = {word: value for word in distinct if (value := read(word)) is not None}
        if len(found) > best[0]:
            best = (len(found), Values(type_, np.empty(0), name), found)
        if len(found) == len(distinct):
            break
    _, values, found = best
    if expected is not None and values is None:
        values = Values(expected, np.empty(0))
    mistakes = [row for row, word in enumerate(words) if word is not None and word not in found]
    n_present = sum(word is not None for word in words)
    is_category = bool(mistakes) and len(distinct) <= MAX_CODES
    if values is None or (expected is None and (is_category or n_present - len(mistakes) < MOSTLY * n_present)):
        return Values("words", _objects(words))
    cells = np.array([found.get(word, math.nan) if word is not None else math.nan for word in words])
    return values._replace(cells=cells, mistakes=tuple(mistakes[:MAX_SHOWN]), n_mistakes=len(mistakes))


def _plain(word: str) -> float | None:
    stripped = word.strip(CURRENCY)
    number = float(stripped) if PLAIN.fullmatch(stripped) else math.inf
    return None if math.isinf(number) else number


def _with_decimal_comma(word: str) -> float | None:
    stripped = word.strip(CURRENCY)
    if not DECIMAL_COMMA.fullmatch(stripped):
        return None
    whole, _, decimals = stripped.partition(",")
    return float(re.sub(r"[^\d+-]", "", whole) + "." + (decimals or "0"))


def _with_thousands_comma(word: str) -> float | None:
    stripped = word.strip(CURRENCY)
    return float(stripped.replace(",", "")) if THOUSANDS_COMMA.fullmatch(stripped) else _plain(word)


def _iso_date(word: str) -> float | None:
    try:
        return _day(datetime.fromisoformat(word)) if len(word) >= 8 and not word.isdigit() else None
    except ValueError:
        return None


def _date_in(formats: tuple[str, ...]) -> Callable[[str], float | None]:
    def read(word: str) -> float | None:
        for form in formats:
            try:
                return _day(datetime.strptime(word, form))
            except ValueError:
                continue
        return None

    return read


READERS: list[tuple[ValueType, str, Callable[[str], float | None]]] = [
    ("numbers", "", _plain),
    ("numbers", "with commas between thousands", _with_thousands_comma),
    ("numbers", "with a decimal comma", _with_decimal_comma),
    ("dates", "", _iso_date),
    *(("dates", f"as {order}", _date_in(formats)) for order, formats in DATE_FORMATS.items()),
]

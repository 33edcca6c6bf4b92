"""The cells of a column as one of a few types, whatever file or data frame they come from.

A column becomes numbers (NaN where missing), dates (days since 1970), words (None where missing) or vectors. Cells that
are text, as all of a CSV file are, become numbers or dates if every one of them can be read as such.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import InputError

MISSING = {"", "na", "n/a", "nan", "null", "<na>", "nat", "?", "#n/a"}  # words for a missing value, in lower case
PLACEHOLDERS = {"-", "--", "–", "—", ".", "none", "unknown", "missing", "k.a."}  # only among numbers, dates or vectors
CURRENCIES = re.compile(r"[€$£¥%]|\b(?:CHF|EUR|USD|GBP)\b")  # left out before or after a number
LARGEST = 2**53  # whole numbers from here on are names: as floating-point numbers they would not differ
MAX_SHOWN = 3  # mistakes of a column that a message shows
MAX_CODES = 20  # different cells of a column in which numbers and words together are the names of categories
MOSTLY = 0.9  # share of the cells that look like numbers or dates, above which the others are taken for mistakes
SECONDS_PER_DAY = 86_400.0

ValueType = Literal["numbers", "dates", "words", "vectors"]
Reader = Callable[[str], float | None]

PLAIN = re.compile(r"-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)  # a leading zero is that of a code
DECIMAL_COMMA = re.compile(r"-?(0|[1-9]\d*|[1-9]\d{0,2}([. \u00a0\u202f']\d{3})+)(,\d+)?", re.ASCII)
THOUSANDS_COMMA = re.compile(r"-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
THOUSANDS_GAP = re.compile(r"-?[1-9]\d{0,2}([ \u00a0\u202f'\u2019]\d{3})+(\.\d+)?", re.ASCII)
UNIT = re.compile(r".*?\d\s*((?:°[^\W\d_]?|[^\W\d_]{1,8})(?:/[^\W\d_]{1,8})?[²³]?)")  # behind a number: kg, km/h, °C
LIST_SEPARATOR = re.compile(r"\s*,\s*|\s+")
NUMBER_LIST = re.compile(r"\[[\s\d.,eE+-]*\]")  # in a cell, with commas or without
DATE_FORMATS = {
    "day.month.year": ("%d.%m.%Y", "%d.%m.%y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"),
    "month/day/year": ("%m/%d/%Y", "%m/%d/%y", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p"),
    "day/month/year": ("%d/%m/%Y", "%d/%m/%y", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S"),
    "year/month/day": ("%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y-%m"),
    "day-month-year": ("%d-%m-%Y", "%d-%b-%Y", "%d %b %Y", "%d %B %Y"),
}
AMBIGUOUS = {"month/day/year": "day/month/year"}  # orders of dates that fit the same cells; the first one is taken
DESCRIPTIONS = {  # of the notations of numbers; those of dates are in `DATE_FORMATS`
    "thousands comma": "with commas between thousands",
    "thousands gap": "with gaps between thousands",
    "decimal comma": "with a decimal comma",
    "time of day": "as time of day",
}
N_TRIED = 100  # different cells, of which a reader must read one


class Words(list):
    """Cells that are words even if they look like numbers, such as those of a categorical column."""


class Values(NamedTuple):
    """The cells of a column.

    Of shape (n,): float64 with NaN for numbers and days, objects with None for words; of shape (n, width) for vectors,
    rows of NaN where missing. Mistakes are cells that are not of the type, although most others are.
    """

    type: ValueType
    cells: np.ndarray
    notation: str = ""  # of numbers or dates: a key of DESCRIPTIONS or DATE_FORMATS, '' for plain and ISO ones
    unit: str = ""  # that stands behind all numbers, such as 'kg'
    mistakes: tuple[int, ...] = ()  # the first rows of them
    n_mistakes: int = 0
    has_mixed_notations: bool = False  # whether mistakes are of the type, but in another notation than the others
    alternative: str = ""  # another notation in which all cells can be read
    placeholders: tuple[str, ...] = ()  # words for missing values that would be words of a category elsewhere
    symbol: str = ""  # the currency or percent sign of all numbers, which new tables need not have
    joined: tuple[str, ...] = ()  # words of a category that are taken for others, which differ in capitals only

    @property
    def is_plain(self) -> bool:
        """Whether cells are written without a particular notation or unit."""
        return not (self.notation or self.unit)

    @property
    def is_missing(self) -> np.ndarray:
        """Which cells are missing."""
        if self.type == "words":
            return np.array([cell is None for cell in self.cells], dtype=bool)
        return np.isnan(self.cells if self.cells.ndim == 1 else self.cells[:, 0])


def describe_notation(notation: str, unit: str) -> str:
    """Say how cells are written, if that is not obvious."""
    style = DESCRIPTIONS.get(notation, f"as {notation}" if notation else "")
    return ", ".join(filter(None, (style, f"in {unit}" if unit else "")))


def read_values(
    cells: Any,
    *,
    as_words: bool = False,
    expected: ValueType | None = None,
    notation: str | None = None,
    unit: str = "",
) -> Values:
    """Recognise the type of the cells of a column.

    Cells are numbers, dates, strings, sequences of numbers, or a mixture; None, NaN and words such as "NA" are missing,
    and so are "-" and "unknown" where the other cells are numbers, dates or vectors. Strings may be taken as they are
    (``as_words``), or read like those of another table, of the expected type, notation and unit; those that cannot be
    are mistakes. Without a notation, any of the type is taken.
    """
    as_words = as_words or isinstance(cells, Words)
    if isinstance(cells, np.ndarray) and not as_words and (values := _from_array(cells)) is not None:
        return values
    if len(cells) and all(cell is None or type(cell) is str for cell in cells):  # of files: equal cells are read once
        word_of = {cell: to_word(cell) for cell in set(cells) if cell is not None and not is_missing(cell)}
        return _from_words([word_of.get(cell) for cell in cells], as_words, expected, notation, unit)
    listed = [None if is_missing(cell) else cell for cell in cells]
    present = [cell for cell in listed if cell is not None]
    if present and not as_words and all(isinstance(cell, list | tuple | np.ndarray) for cell in present):
        return _vectors(listed)
    is_huge = any(isinstance(cell, int | np.integer) and abs(int(cell)) >= LARGEST for cell in present)
    if not as_words and not is_huge:
        for kinds, type_, convert in NATIVE:
            if all(isinstance(cell, kinds) and not isinstance(cell, bool | np.bool_) for cell in present) and present:
                numbers = [math.nan if cell is None else convert(cell) for cell in listed]
                return _finite_values(type_, np.array(numbers, dtype=np.float64))
    words = [None if cell is None else to_word(cell) for cell in listed]
    return _from_words(words, as_words or is_huge, expected, notation, unit)


def _from_words(
    words: list[str | None], as_words: bool, expected: ValueType | None, notation: str | None, unit: str
) -> Values:
    if as_words:
        return Values("words", to_objects(words))
    if placeholders := {word for word in set(words) if word is not None and word.lower() in PLACEHOLDERS}:
        others = [None if word in placeholders else word for word in words]
        values = _from_words(others, as_words, expected, notation, unit)
        if values.type != "words":
            return values._replace(placeholders=tuple(sorted(placeholders)))
    vectors = _vectors_of_words(words) if expected in (None, "vectors") else None
    return _parse(words, expected, notation, unit) if vectors is None else vectors


def _vectors_of_words(words: Sequence[str | None]) -> Values | None:
    """Return lists of numbers in words, such as "[0.5, 1]", as vectors; None unless all are, of the same length."""
    present = [word for word in words if word is not None]
    if not present or not all(NUMBER_LIST.fullmatch(word) for word in present):
        return None
    try:
        cells = [
            None if word is None else [float(part) for part in LIST_SEPARATOR.split(word[1:-1].strip())]
            for word in words
        ]
    except ValueError:
        return None
    values = _vectors(cells)
    return values if values.type == "vectors" and not values.n_mistakes else None


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty, NaN, or a word for a missing value."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    if cell is None or isinstance(cell, list | tuple | np.ndarray):
        return cell is None
    return bool(cell != cell) if isinstance(cell, Real | Decimal) else str(cell) in ("NaT", "<NA>")


def to_word(cell: Any) -> str:
    """Return a cell as text; whole numbers have no decimal point, and equal values the same text in all files."""
    if isinstance(cell, bool | np.bool_):
        return str(cell).lower()
    is_whole = isinstance(cell, float | np.floating) and float(cell).is_integer()
    if isinstance(cell, list | tuple | np.ndarray):
        return ", ".join(map(to_word, cell))
    word = str(int(cell)) if is_whole else " ".join(str(cell).split())
    return word.lower() if word in ("True", "False", "TRUE", "FALSE") else word


# ----------------------------------------------------------------------------------------------- values of other types


def _from_array(cells: np.ndarray) -> Values | None:
    """Return the values of an array of numbers or dates; None for other arrays."""
    kind = cells.dtype.kind
    if kind == "f":
        with np.errstate(over="ignore"):  # of numbers in extended precision
            cells = cells.astype(np.float64)
    if kind in "iuf" and cells.ndim == 2:
        return _finite_values("vectors", cells.astype(np.float64))
    if kind in "iu" and len(cells) and max(-int(cells.min()), int(cells.max())) >= LARGEST:
        return None
    if kind in "iuf":
        return _finite_values("numbers", cells.astype(np.float64))
    if kind == "M":
        microseconds = cells.astype("datetime64[us]")
        days = microseconds.astype(np.int64) / (1e6 * SECONDS_PER_DAY)
        return Values("dates", np.where(np.isnat(microseconds), np.nan, days))
    if kind == "m":
        return _finite_values("numbers", np.where(np.isnat(cells), np.nan, cells / np.timedelta64(1, "s")))
    return None


def _finite_values(type_: ValueType, cells: np.ndarray) -> Values:
    """Return numbers or vectors, of which infinite ones are mistakes."""
    is_infinite = np.isinf(cells)
    infinite = np.flatnonzero(is_infinite if cells.ndim == 1 else is_infinite.any(axis=1))
    return Values(type_, cells, mistakes=tuple(infinite[:MAX_SHOWN].tolist()), n_mistakes=len(infinite))


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


def to_objects(words: Sequence[str | None]) -> np.ndarray:
    """Return words, and None where they are missing, as an array."""
    cells = np.empty(len(words), dtype=object)
    cells[:] = words
    return cells


def _vectors(cells: Sequence[Any]) -> Values:
    """Return vectors of the most frequent length; others, and those with infinite entries, are mistakes."""
    try:
        arrays = [None if cell is None else np.asarray(cell, dtype=np.float64) for cell in cells]
    except (ValueError, TypeError):  # lists of words: tags, for example
        return Values("words", to_objects([None if cell is None else to_word(cell) for cell in cells]))
    widths = Counter(len(array) for array in arrays if array is not None)
    width = widths.most_common(1)[0][0]
    if not width:
        return Values("words", to_objects([None] * len(cells)))
    vectors, mistakes = np.full((len(cells), width), math.nan), []
    for row, array in enumerate(arrays):
        if array is not None and array.shape == (width,) and not np.isinf(array).any():
            vectors[row] = array
        elif array is not None:
            mistakes.append(row)
    return Values("vectors", vectors, mistakes=tuple(mistakes[:MAX_SHOWN]), n_mistakes=len(mistakes))


# -------------------------------------------------------------------------------------------------- words that are read


class Rule(NamedTuple):
    """How the words of a notation are read; None for words in another one."""

    type: ValueType | None
    notation: str
    read: Reader
    unit: str = ""


def _parse(words: Sequence[str | None], expected: ValueType | None, notation: str | None, unit: str) -> Values:
    """Read words as numbers or dates if all of them, or most, are in the same notation."""
    distinct = sorted({word for word in words if word is not None})
    readings = _read_by_rules(distinct, expected, notation, unit)
    rule, numbers = max(readings, key=lambda one: len(one[1]), default=(Rule(expected, "", _plain), {}))
    mistakes = [row for row, word in enumerate(words) if word is not None and word not in numbers]
    n_present = sum(word is not None for word in words)
    is_category = bool(mistakes) and len(distinct) <= MAX_CODES
    is_mostly = n_present - len(mistakes) >= MOSTLY * n_present
    in_any_notation = {word for other, words_read in readings if other.type == rule.type for word in words_read}
    is_mixed = not is_mostly and len(in_any_notation) == len(distinct)
    if rule.type is None or (expected is None and (is_category or not (is_mostly or is_mixed))):
        return Values("words", to_objects(words))
    cells = np.array([numbers.get(word, math.nan) if word is not None else math.nan for word in words])
    other = "" if mistakes or expected is not None else _alternative(rule.notation, distinct)
    shown = tuple(mistakes[:MAX_SHOWN])
    symbol = "" if rule.type != "numbers" else common_symbol(distinct)
    return Values(rule.type, cells, rule.notation, rule.unit, shown, len(mistakes), is_mixed, other, symbol=symbol)


def common_symbol(words: Iterable[str]) -> str:
    """Return the currency or percent sign that all numbers have; '' if there is none.

    Examples
    --------
    >>> common_symbol(["5 €", "€ 7.50"]), common_symbol(["5 €", "7.50"])
    ('€', '')
    """
    symbols = {"".join(CURRENCIES.findall(word)) for word in words}
    return symbols.pop() if len(symbols) == 1 else ""


def _read_by_rules(
    distinct: Sequence[str], expected: ValueType | None, notation: str | None, unit: str
) -> list[tuple[Rule, dict[str, float]]]:
    """Read words by all rules by which some can be read, until all can; or as those of another table were read."""
    readings = []
    for rule in _rules(distinct, unit):
        is_iso_date = rule.type == "dates" and not rule.notation
        is_same = (rule.notation, rule.unit) == (notation, unit) or is_iso_date
        if expected is not None and (rule.type != expected or not (notation is None or is_same)):
            continue
        if expected is None and all(rule.read(word) is None for word in distinct[:N_TRIED]):
            continue
        readings.append((rule, {word: value for word in distinct if (value := rule.read(word)) is not None}))
        if len(readings[-1][1]) == len(distinct):
            break
    return readings


def _rules(distinct: Sequence[str], unit: str) -> list[Rule]:
    """Return the rules for words, also with a unit: the given one, or that which all words have behind their number."""
    if not unit:
        units = {match[1] if (match := UNIT.fullmatch(word)) else "" for word in distinct[:N_TRIED]}
        unit = units.pop() if len(units) == 1 else ""

    def with_unit(read: Reader) -> Reader:
        return lambda word: read(word.removesuffix(unit).strip()) if word.endswith(unit) else None

    numbers = [rule for rule in RULES if rule.type == "numbers" and rule.notation != "time of day"]
    return [*RULES, *(rule._replace(read=with_unit(rule.read), unit=unit) for rule in numbers if unit)]


def _alternative(notation: str, distinct: Sequence[str]) -> str:
    """Return how else all dates can be read: the month and the day of none of them differ from a day and a month."""
    other = AMBIGUOUS.get(notation)
    read = next((rule.read for rule in RULES if rule.notation == other), None)
    return other if other and read and all(read(word) is not None for word in distinct) else ""


def _clean(word: str) -> str:
    """Return a number without currency, and with its sign in front: (12.50), 12.50- and −12.50 are negative."""
    bare = CURRENCIES.sub("", word.replace("\u2212", "-")).strip()
    if bare.startswith("(") and bare.endswith(")"):
        return f"-{bare[1:-1]}"
    return f"-{bare[:-1]}" if bare.endswith("-") else bare


def _plain(word: str) -> float | None:
    bare = _clean(word)
    return _number(bare) if PLAIN.fullmatch(bare) else None


def _number(text: str) -> float | None:
    """Return a number; None for one that is too large, or a whole one with more digits than a float has."""
    number = float(text)
    is_name = abs(number) >= LARGEST and "." not in text and "e" not in text.lower()
    return None if math.isinf(number) or is_name else number


def _with_decimal_comma(word: str) -> float | None:
    bare = _clean(word)
    if not DECIMAL_COMMA.fullmatch(bare):
        return None
    whole, _, decimals = bare.partition(",")
    digits = re.sub(r"[^0-9-]", "", whole)
    return _number(f"{digits}.{decimals}" if decimals else digits)


def _with_thousands_comma(word: str) -> float | None:
    bare = _clean(word)
    return _number(bare.replace(",", "")) if THOUSANDS_COMMA.fullmatch(bare) else _plain(word)


def _with_thousands_gap(word: str) -> float | None:
    bare = _clean(word)
    return _number(re.sub(r"[^0-9.-]", "", bare)) if THOUSANDS_GAP.fullmatch(bare) else _plain(word)


def _time_of_day(word: str) -> float | None:
    try:
        return _seconds(time.fromisoformat(word)) if ":" in word else None
    except ValueError:
        return None


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


RULES = [
    Rule("numbers", "", _plain),
    Rule("numbers", "thousands comma", _with_thousands_comma),
    Rule("numbers", "thousands gap", _with_thousands_gap),
    Rule("numbers", "decimal comma", _with_decimal_comma),
    Rule("numbers", "time of day", _time_of_day),
    Rule("dates", "", _iso_date),
    *(Rule("dates", order, _date_in(formats)) for order, formats in DATE_FORMATS.items()),
]


def standardize(values: np.ndarray, center: np.ndarray, scale: np.ndarray | float, where: str) -> np.ndarray:
    """Return (x - c) / s; raise an error for values too far from those of the fit, which overflow."""
    with np.errstate(over="ignore"):
        result = (values - center) / scale
    if np.isinf(result).any():
        largest = float(np.nanmax(np.abs(values)))
        problem = f"{where} has values of magnitude {largest:.1e}, too far from those of the fit"
        raise InputError(problem, "check their unit", code="values_too_far", largest=largest)
    return result

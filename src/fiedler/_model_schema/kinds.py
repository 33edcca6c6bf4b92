"""Kinds of values of attributes: each is a :class:`Spec`, a test and its description."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

MAX_SIZE = 2**40  # that an attribute may state
FLOATS, INTEGERS, BOOLEANS = "f", "iu", "b"

Sizes: TypeAlias = dict[str, int]
SizesOf: TypeAlias = Callable[[Any], Sizes]  # the sizes of an object that has been checked


class Spec(NamedTuple):
    """What a value must be: in words, and as a test that also notes down the sizes that it finds."""

    text: str
    matches: Callable[[Any, Sizes, SizesOf], bool]
    is_required: bool = True  # of a fitted model


def agree(sizes: Sizes, letters: Sequence[str | int], shape: Sequence[int]) -> bool:
    """Whether a shape has the sizes that its letters stand for; those of new letters are noted down."""
    if len(letters) != len(shape):
        return False
    return all(
        size == (letter if isinstance(letter, int) else sizes.setdefault(letter, size))
        for letter, size in zip(letters, shape)
    )


def _array(
    kinds: str, word: str, letters: tuple[str | int, ...], is_valid: Callable[[np.ndarray, Sizes], bool]
) -> Spec:
    def matches(value: Any, sizes: Sizes, _: SizesOf) -> bool:
        is_array = isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.dtype != np.float16
        return is_array and agree(sizes, letters, value.shape) and (not value.size or is_valid(value, sizes))

    shape = ", ".join(map(str, letters)) + ("," if len(letters) == 1 else "")
    return Spec(f"{word} ({shape})", matches)


def floats(*letters: str | int, low: float = -math.inf) -> Spec:
    """Describe an array of finite numbers, of at least ``low``."""
    word = "float" if low == -math.inf else f"float ≥ {low:g}"
    return _array(FLOATS, word, letters, lambda value, _: bool(np.isfinite(value).all()) and bool(value.min() >= low))


def any_floats(*letters: str | int) -> Spec:
    """Describe an array of numbers, infinity or NaN."""
    return _array(FLOATS, "float or NaN", letters, lambda value, _: True)


def integers(*letters: str | int, low: int = 0, below: str | None = None) -> Spec:
    """Describe an array of integers from ``low``, and less than the size ``below``."""

    def is_valid(value: np.ndarray, sizes: Sizes) -> bool:
        return bool(value.min() >= low) and (below is None or int(value.max()) < sizes.get(below, math.inf))

    return _array(INTEGERS, f"int ≥ {low}" + (f" and < {below}" if below else ""), letters, is_valid)


def booleans(*letters: str | int) -> Spec:
    """Describe an array of truth values."""
    return _array(BOOLEANS, "bool", letters, lambda value, _: True)


def labels(*letters: str | int) -> Spec:
    """Describe an array of classes, which may be numbers or strings."""
    return _array("biufUSO", "int, float, bool or string", letters, lambda value, _: True)


def strings(*letters: str | int) -> Spec:
    """Describe an array of strings."""
    return _array("UO", "string", letters, lambda value, _: True)


def rows(n: str, d: str) -> Spec:
    """Describe rows of numbers whose squares do not overflow, an array or a sparse matrix."""

    def matches(value: Any, sizes: Sizes, _: SizesOf) -> bool:
        is_matrix = (isinstance(value, np.ndarray) or sp.issparse(value)) and value.dtype in (np.float32, np.float64)
        return is_matrix and agree(sizes, (n, d), value.shape) and _can_be_squared(_entries(value))

    return Spec(f"float ({n}, {d}), dense or sparse", matches)


def _can_be_squared(values: np.ndarray) -> bool:
    limit = math.sqrt(float(np.finfo(values.dtype).max) / 8)
    return not values.size or bool(values.max() <= limit and values.min() >= -limit)  # false for NaN


def _entries(matrix: Any) -> np.ndarray:
    return matrix.data if sp.issparse(matrix) else matrix


def real(low: float = -math.inf) -> Spec:
    """Describe a number of at least ``low``; NaN and infinity are numbers unless there is a bound."""
    text = "number" if low == -math.inf else f"number ≥ {low:g}"
    return Spec(text, lambda value, *_: is_real(value) and (low == -math.inf or low <= value < math.inf))


def integer(low: int = 0) -> Spec:
    """Describe an integer of at least ``low``."""
    return Spec(f"integer ≥ {low}", lambda value, *_: is_integer(value) and value >= low)


def size(letter: str) -> Spec:
    """Describe an integer that is a size."""

    def matches(value: Any, sizes: Sizes, _: SizesOf) -> bool:
        return is_integer(value) and 0 <= value <= MAX_SIZE and agree(sizes, (letter,), (value,))

    return Spec(f"integer, {letter}", matches)


def one_of(*options: Any) -> Spec:
    """Describe one of some strings, or None."""
    return Spec(" or ".join(map(repr, options)), lambda value, *_: isinstance(value, str | None) and value in options)


def record(*names: str, **letters: str) -> Spec:
    """Describe an object of one of some classes; ``letters`` says which of its sizes are which of this object."""

    def matches(value: Any, sizes: Sizes, sizes_of: SizesOf) -> bool:
        if type(value).__name__ not in names:
            return False
        inner = sizes_of(value)
        pairs = [(outer, inner[own]) for own, outer in letters.items() if own in inner]
        return agree(sizes, [outer for outer, _ in pairs], [number for _, number in pairs])

    passed_on = ", ".join(own if own == outer else f"{own} = {outer}" for own, outer in letters.items())
    return Spec(" or ".join(names) + (f" ({passed_on})" if passed_on else ""), matches)


def either(*specs: Spec) -> Spec:
    """Describe a value that is described by one of several specifications."""

    def matches(value: Any, sizes: Sizes, sizes_of: SizesOf) -> bool:
        for spec in specs:
            found = dict(sizes)
            if spec.matches(value, found, sizes_of):
                sizes.update(found)
                return True
        return False

    return Spec(", or ".join(spec.text for spec in specs), matches)


def maybe(*specs: Spec) -> Spec:
    """Describe a value that may also be None."""
    return either(*specs, NONE)


def optional(spec: Spec) -> Spec:
    """Describe an attribute that not every fitted model has."""
    return spec._replace(is_required=False)


def many(item: Spec, letter: str = "") -> Spec:
    """Describe a list, of a length that is a size."""

    def matches(value: Any, sizes: Sizes, sizes_of: SizesOf) -> bool:
        is_list = isinstance(value, list) and (not letter or agree(sizes, (letter,), (len(value),)))
        return is_list and all(item.matches(one, sizes, sizes_of) for one in value)

    return Spec(f"list of {letter + ' times ' if letter else ''}{item.text}", matches)


def named(key: Spec, item: Spec) -> Spec:
    """Describe a dictionary."""

    def matches(value: Any, sizes: Sizes, sizes_of: SizesOf) -> bool:
        return type(value) is dict and all(
            key.matches(name, sizes, sizes_of) and item.matches(one, sizes, sizes_of) for name, one in value.items()
        )

    return Spec(f"dict of {key.text}: {item.text}", matches)


def is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


NONE = Spec("None", lambda value, *_: value is None)
TEXT = Spec("string", lambda value, *_: isinstance(value, str))
BOOLEAN = Spec("bool", lambda value, *_: isinstance(value, bool | np.bool_))

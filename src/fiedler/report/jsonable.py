"""Conversion of values and texts to what JSON can represent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

Summary = dict[str, Any]

MAX_TEXT_LENGTH = 240  # characters


def jsonable(value: object) -> Any:
    """Convert a value to what JSON can represent: non-finite numbers become None, other objects their ``repr``.

    Examples
    --------
    >>> jsonable({"a": np.float64("nan"), "b": (np.int64(1), True), 3: slice(2)})
    {'a': None, 'b': [1, True], '3': 'slice(None, 2, None)'}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean_text(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    return shorten(clean_text(value if isinstance(value, str) else repr(value)), MAX_TEXT_LENGTH)


def clean_text(text: object, *, keep_lines: bool = False) -> str:
    """Return text that UTF-8 can encode, without lone surrogates and, unless ``keep_lines``, on one line."""
    encodable = str(text).encode("utf-8", "replace").decode("utf-8")
    return encodable if keep_lines else " ".join(encodable.split())


def shorten(text: str, length: int) -> str:
    """Cut a text to at most ``length`` characters.

    Examples
    --------
    >>> shorten("a long text", 7)
    'a long…'
    """
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def count_noun(number: int, noun: str) -> str:
    """Write a number with its noun in the singular or plural.

    Examples
    --------
    >>> count_noun(1, "edge"), count_noun(2000, "edge")
    ('1 edge', '2,000 edges')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def round_float(value: Any, digits: int = 4) -> float:
    """Round a number of any type to a Python float."""
    return round(float(value), digits)

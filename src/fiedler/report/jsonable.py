"""Values as JSON has them, and texts that every page can hold."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

Summary = dict[str, Any]

SNIPPET = 240  # characters of a text


def jsonable(value: Any) -> Any:
    """``value`` as JSON has it: numbers that are not finite become None, what is no plain data becomes its repr.

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
        return {clean(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    return shortened(clean(value if isinstance(value, str) else repr(value)), SNIPPET)


def clean(text: Any, *, lines: bool = False) -> str:
    """Text that every file can hold: half characters replaced, white space evened out unless ``lines`` are kept."""
    whole = str(text).encode("utf-8", "replace").decode("utf-8")
    return whole if lines else " ".join(whole.split())


def shortened(text: str, length: int) -> str:
    """The beginning of a text.

    Examples
    --------
    >>> shortened("a long story", 7)
    'a long…'
    """
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def counted(number: int, one: str) -> str:
    """So many of something.

    Examples
    --------
    >>> counted(1, "edge"), counted(2000, "edge")
    ('1 edge', '2,000 edges')
    """
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def rounded(value: Any, digits: int = 4) -> float:
    """A plain number of a few digits."""
    return round(float(value), digits)

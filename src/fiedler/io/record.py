"""What was read: rows that a model takes, and what a person calls them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

TABLE_OPTIONS_ONLY = "labels, id, text and drop are for tables"
MISSING = {"", "na", "n/a", "nan", "null", "<na>", "?"}  # how people write that there is nothing


class Input(NamedTuple):
    """Rows and what is known of them.

    Attributes
    ----------
    kind : {'table', 'array', 'images', 'texts'}
    X : array or CSR matrix of shape (n, d), or list of n texts
        Images are rows of pixels between 0 and 1.
    names : list of str
        One for each row: the file, an id from the table, or the row's number, from 0.
    columns : list of str or None
        Of a table.
    pixels : tuple or None
        The shape of an image.
    labels : list of str or None
        Known classes, by name; '' where unknown.

    Examples
    --------
    >>> from fiedler.io import Input
    >>> Input("texts", ["a sentence", "another"], ["first", "second"]).n_rows
    2
    """

    kind: str
    X: Any
    names: list[str]
    columns: list[str] | None = None
    pixels: tuple[int, ...] | None = None
    labels: list[str] | None = None

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.names)

    @property
    def steers(self) -> bool:
        """Whether the known labels have gaps, and so are for the method to learn from."""
        return self.labels is not None and "" in self.labels

    def codes(self) -> tuple[np.ndarray, list[str]]:
        """The known classes as numbers 0, 1, ... with -1 where unknown, and what the numbers stand for.

        Examples
        --------
        >>> Input("texts", ["a", "b", "c"], ["0", "1", "2"], labels=["dog", "", "cat"]).codes()
        (array([ 1, -1,  0]), ['cat', 'dog'])
        """
        labels = self.labels or [""] * self.n_rows
        classes = sorted(set(labels) - {""})
        number = {name: code for code, name in enumerate(classes)} | {"": -1}
        return np.array([number[name] for name in labels]), classes


class Roles(NamedTuple):
    """What the columns of a table are for; those that are not named are features, unless these are named instead."""

    labels: str | None = None
    id: str | None = None
    text: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


def class_names(values: Any) -> list[str]:
    """Classes by name, '' where unknown: whole numbers without a point, whichever type they come in.

    Examples
    --------
    >>> class_names(["dog ", None, 2.0, float("nan"), 3, "NA"])
    ['dog', '', '2', '', '3', '']
    """
    return [_class_name(value) for value in values]


def is_missing(cell: Any) -> bool:
    """Whether there is nothing in a cell, or a word for nothing."""
    return cell is None or cell != cell or (isinstance(cell, str) and cell.strip().lower() in MISSING)  # NaN != NaN


def _class_name(value: Any) -> str:
    if is_missing(value):
        return ""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value).strip()


def row_numbers(n_rows: int) -> list[str]:
    """Names for rows that have none."""
    return [str(row) for row in range(n_rows)]

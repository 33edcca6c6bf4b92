"""The record that all readers return, and the encoding of known classes as integers."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from .._tables import Table
from ..errors import InputError
from ..table import TableEncoder
from ..table.values import is_missing

Kind = Literal["table", "mixed", "array", "images", "texts", "graph"]


class Input(NamedTuple):
    """Rows to cluster, with their names and known classes.

    Attributes
    ----------
    kind : {'table', 'mixed', 'array', 'images', 'texts', 'graph'}
        A table of numbers, or one with columns of any kind, which ``encoder`` turns into numbers.
    X : array or CSR matrix of shape (n, d), list of n texts, dict of columns of n cells, or AffinityGraph
        Images are rows of pixels between 0 and 1.
    row_names : list of str
        One name per row: the file, an id from the table, or the row number, counted from 0.
    feature_names : list of str or None
        Names of the columns of a table that are used.
    image_shape : tuple or None
        Height, width and, in colour, the number of channels of an image.
    labels : array of shape (n,) or None
        Known classes as integer codes into ``class_names``; -1 where unknown.
    class_names : list of str or None
        Name of each class.
    encoder : TableEncoder or None
        Of a mixed table, not fitted.
    id_name : str or None
        The name of the column of row names, if there is one.
    table : Table or None
        All columns of a table as they are in the file.
    label_name : str or None
        The name of the column of known classes.
    weights : array of shape (n,) or None
        The weights of the rows.
    skipped : tuple of str
        The names of files that were left out, as they cannot be read.
    representation : str or None
        What of an AnnData file was read: 'connectivities', 'X', or the name of rows in ``obsm``.

    Examples
    --------
    >>> from fiedler.io import Input
    >>> Input("texts", ["a sentence", "another"], ["first", "second"]).n_rows
    2
    """

    kind: Kind
    X: Any
    row_names: list[str]
    feature_names: list[str] | None = None
    image_shape: tuple[int, ...] | None = None
    labels: np.ndarray | None = None
    class_names: list[str] | None = None
    encoder: TableEncoder | None = None
    id_name: str | None = None
    table: Table | None = None
    label_name: str | None = None
    weights: np.ndarray | None = None
    skipped: tuple[str, ...] = ()
    representation: str | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.row_names)

    @property
    def columns(self) -> dict[str, Any] | None:
        """The columns of the table that describe rows, also those that are not used, without names and classes."""
        if self.table is None:
            return None
        return {
            name: cells for name, cells in self.table.columns.items() if name not in (self.id_name, self.label_name)
        }

    @property
    def is_partially_labeled(self) -> bool:
        """Whether some but not all rows have a known class, so that a method can learn from them."""
        return self.labels is not None and bool((self.labels < 0).any())


class Roles(NamedTuple):
    """Roles of the columns of a table; columns without a role are features, unless ``features`` names them.

    ``category``, ``number`` and ``free_text`` are columns that are taken for these, ``weight`` are pairs of a column
    and its weight, ``is_new`` says that the rows are new ones for a model, which decides how columns are used,
    ``names`` is a column of row names that need not exist, and ``row_weight`` one of weights of the rows.
    """

    labels: str | None = None
    id: str | None = None
    text: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    free_text: tuple[str, ...] = ()
    weight: tuple[tuple[str, float], ...] = ()
    is_new: bool = False
    names: str | None = None
    row_weight: str | None = None

    def encoder(self) -> TableEncoder:
        """Return the encoder of a mixed table."""
        return TableEncoder(
            as_category=self.category, as_number=self.number, as_text=self.free_text, weight=dict(self.weight) or None
        )


def encode_labels(values: Iterable[Any], *, unknown: Container[str] = ()) -> tuple[np.ndarray, list[str]]:
    """Encode classes as integers, -1 where missing, and return the codes and the sorted class names.

    Floats that are whole numbers are named without a decimal point. Names in ``unknown`` count as missing.

    Examples
    --------
    >>> encode_labels(["dog ", None, 2.0, float("nan"), 3, "NA"])
    (array([ 2, -1,  0, -1,  1, -1]), ['2', '3', 'dog'])
    """
    names = [_class_name(value) for value in values]
    names = [None if name in unknown else name for name in names]
    class_names = sorted({name for name in names if name is not None})
    code_of = {name: code for code, name in enumerate(class_names)}
    return np.array([-1 if name is None else code_of[name] for name in names], dtype=np.int64), class_names


def _class_name(value: Any) -> str | None:
    if is_missing(value):
        return None
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value).strip()


def number_rows(n_rows: int) -> list[str]:
    """Name rows by their numbers, counted from 0."""
    return [str(row) for row in range(n_rows)]


def table_options_error(source: str) -> InputError:
    """Make the error for options that name columns of a source without columns."""
    return InputError(
        f"{source} has no named columns", "labels, id, text and drop are for tables", code="no_columns", file=source
    )

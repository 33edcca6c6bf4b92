"""Any source to rows: which reader is asked is told by a table of endings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._validation import did_you_mean
from ..datasets import list_datasets, load
from ..text.read import is_hidden, read_documents
from .arrays import from_array, from_npy, from_npz
from .images import from_images, is_image
from .record import TABLE_OPTIONS_ONLY, Input, Roles
from .tables import TABLES


def read_input(
    source: str | os.PathLike[str],
    *,
    labels: str | None = None,
    id: str | None = None,
    text: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] = (),
    size: int | None = None,
) -> Input:
    r"""The rows of a file or folder, or of a data set by its name.

    Parameters
    ----------
    source : path or str
        A ``.csv``, ``.tsv`` or ``.parquet`` table, an ``.npy`` array, an ``.npz`` file with an array ``X`` or a sparse
        matrix, a ``.jsonl`` or ``.txt`` file of texts, a folder of images or of ``.txt`` files, or a name of
        :func:`fiedler.datasets.list_datasets`.
    labels : str, optional
        A column of known classes, '' where unknown, or the array of them in an ``.npz`` file; a data set brings its
        own.
    id : str, optional
        A column of names for the rows.
    text : str, optional
        A column of texts, which are then clustered instead of the numbers.
    drop : sequence of str
        Columns to leave out.
    features : sequence of str
        The columns to take, in this order; by default all that have no other role.
    size : int, optional
        Pixels a side to bring images to.

    Returns
    -------
    Input

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "boxes.csv"
    >>> _ = path.write_text("name,height,width\na,1,2\nb,1.5,2\n")
    >>> found = read_input(path, id="name")
    >>> found.names, found.columns, found.X.tolist()
    (['a', 'b'], ['height', 'width'], [[1.0, 2.0], [1.5, 2.0]])
    """
    if not str(source):
        raise ValueError("the name of the input is empty; give a file, a folder or a data set")
    path, roles = Path(source), Roles(labels, id, text, tuple(drop), tuple(features))
    if not path.exists():
        return _from_name(str(source), roles)
    if path.is_dir():
        return _from_folder(path, roles, size)
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name!r} is an empty file; was it written to its end?")
    if size is not None:
        raise ValueError(f"{path.name!r} is no folder of images, which size is for")
    ending = path.suffix.lower()
    if ending not in READERS:
        raise ValueError(f"{path.name!r} ends in none of {', '.join(READERS)}; bring it into one of these forms")
    return READERS[ending](path, roles)


def _from_name(name: str, roles: Roles) -> Input:
    if name not in list_datasets():
        guess = did_you_mean(name, list_datasets())
        raise FileNotFoundError(
            f"there is no file, folder or data set {name!r}{guess}; check the path, or see: fiedler data list"
        )
    if roles != Roles():
        raise ValueError(f"the data set {name!r} brings its own labels and no columns to name; {TABLE_OPTIONS_ONLY}")
    data = load(name, verbose=False)
    known = [str(data.target_names[label]) for label in data.y]
    if "image_shape" in data:
        return from_array(_images(data), known, name)
    found = from_array(data.X, known, name)  # refuses missing values with a sentence
    if data.feature_names is None or issparse(data.X):
        return found
    return found._replace(kind="table", columns=[str(one) for one in data.feature_names])


def _images(data: Any) -> np.ndarray:
    """The rows of pixels as images, whichever way they were unrolled."""
    return np.stack([row.reshape(data.image_shape, order=data.image_order) for row in data.X])


def _from_folder(folder: Path, roles: Roles, size: int | None) -> Input:
    """Images or texts, whichever the folder holds; both would be two questions."""
    if roles != Roles():
        raise ValueError(f"the folder {folder.name!r} has no columns to name; {TABLE_OPTIONS_ONLY}")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not is_hidden(path.relative_to(folder)))
    images = [path for path in files if is_image(path)]
    texts = [path for path in files if path.suffix.lower() == ".txt"]
    if images and texts:
        raise ValueError(f"the folder {folder.name!r} holds {len(images)} images and {len(texts)} texts; part them")
    if not images and not texts:
        raise ValueError(f"the folder {folder.name!r} holds no images and no .txt files; give one that does")
    return from_images(folder, images, size) if images else _from_texts(folder, roles)


def _from_texts(path: Path, roles: Roles) -> Input:
    if roles != Roles(text=roles.text):
        raise ValueError(f"{path.name!r} has no columns to name; {TABLE_OPTIONS_ONLY}")
    documents = read_documents(path, column=roles.text)
    binary = next((name for text, name in zip(*documents) if "\0" in text), None)
    if binary is not None:
        raise ValueError(f"{binary!r} is not text: it holds binary data; take it out")
    return Input("texts", documents.texts, documents.names)


READERS: dict[str, Callable[[Path, Roles], Input]] = {
    **TABLES,
    ".npy": from_npy,
    ".npz": from_npz,
    ".jsonl": _from_texts,
    ".txt": _from_texts,
}

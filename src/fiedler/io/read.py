"""Read rows from any source; the ending of a file selects its reader."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._tables import decode
from .._validation import did_you_mean
from ..datasets import list_datasets, load
from ..errors import DataNotFoundError, FileFormatError, InputError
from ..text.read import is_hidden, read_documents
from .arrays import H5AD, ImageOptions, from_array, from_h5ad, from_images, from_npy, from_npz, is_image
from .record import Input, Roles, table_options_error
from .tables import TABLES, from_table, read_table, read_tables, table_ending, text_to_table

JSON_LINES = (".jsonl", ".ndjson")
STDIN = "standard input"

# The inputs that options are for.
INPUTS_OF_OPTIONS = {
    "size": "folders of images",
    "skip_broken": "folders of images",
    "labels_from_folders": "folders of images or texts",
    "use_rep": "h5ad files",
}


def read_input(
    source: str | os.PathLike[str],
    *,
    labels: str | None = None,
    id: str | None = None,
    text: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] = (),
    as_category: Sequence[str] = (),
    as_number: Sequence[str] = (),
    as_text: Sequence[str] = (),
    weight: Mapping[str, float] | None = None,
    is_new: bool = False,
    names: str | None = None,
    row_weight: str | None = None,
    size: int | None = None,
    image_shape: Sequence[int] | None = None,
    skip_broken: bool = False,
    labels_from_folders: bool = False,
    use_rep: str | None = None,
    allow_graph: bool = True,
) -> Input:
    r"""Read the rows of a file, a folder, or a data set by its name.

    Parameters
    ----------
    source : path or str
        A table (``.csv`` or ``.tsv`` in any usual encoding and compression, ``.xlsx``, ``.xls``, ``.ods``,
        ``.parquet``), an ``.npy`` array, an ``.npz`` file with an array ``X`` or a sparse matrix, an ``.h5ad`` file of
        cells, a ``.jsonl`` file of texts or of objects with fields, a ``.txt`` file of texts, a folder of tables, of
        images or of ``.txt`` files, an image, a name of :func:`fiedler.datasets.list_datasets`, or ``"-"`` for a CSV
        table on standard input.
    labels : str, optional
        Column of known classes, in an ``.h5ad`` file of ``obs``, or the array of them in an ``.npz`` file; empty cells,
        and -1 in arrays, mean that the class is unknown. A data set has its own labels.
    id : str, optional
        Column of row names.
    text : str, optional
        Column of texts, which are then clustered instead of the numbers.
    drop : sequence of str
        Columns to leave out.
    features : sequence of str
        Columns of numbers to use, in this order; by default all columns without another role, of any kind.
    as_category, as_number, as_text, weight
        As in :class:`fiedler.table.TableEncoder`.
    is_new : bool
        Whether these are new rows for a model, which decides how columns are used.
    names : str, optional
        Column of row names that need not exist.
    row_weight : str, optional
        Column of the weights of rows, as in ``sample_weight``.
    size : int, optional
        Resize images to this many pixels per side.
    image_shape : sequence of int, optional
        Height, width and, in colour, number of channels of the images of a model, for new images: they are converted to
        its colours and, without ``size``, resized to its height and width.
    skip_broken : bool
        Whether to leave out images that cannot be read, with a warning that names them.
    labels_from_folders : bool
        Whether the class of an image or a text is the subfolder that it is in; the class of those outside of
        subfolders is unknown.
    use_rep : str, optional
        What of an ``.h5ad`` file is read, as in :func:`fiedler.integrations.anndata.cluster`: by default the graph of
        the cells, if there is one, else ``obsm["X_pca"]``, else ``X``.
    allow_graph : bool
        Whether the graph of an ``.h5ad`` file is read by default; otherwise rows are.

    Returns
    -------
    Input

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "boxes.csv"
    >>> _ = path.write_text("name,height,width\na,1,2\nb,1.5,2.5\n")
    >>> data = read_input(path, id="name")
    >>> data.row_names, data.feature_names, data.X.tolist()
    (['a', 'b'], ['height', 'width'], [[1.0, 2.0], [1.5, 2.5]])
    """
    if not str(source):
        raise InputError("the name of the input is empty", "give a file, a folder or a data set", code="empty_source")
    kinds = (tuple(as_category), tuple(as_number), tuple(as_text), tuple((weight or {}).items()))
    path, roles = Path(source), Roles(labels, id, text, tuple(drop), tuple(features), *kinds, is_new, names, row_weight)
    images = ImageOptions(size, None if image_shape is None else tuple(image_shape), skip_broken)
    is_stdin = str(source) == "-"
    if not is_stdin and not path.exists():
        _check_is_dataset(str(source))
    if is_stdin or path.suffix.lower() != H5AD:
        _refuse_options(path.name, use_rep=use_rep)
    if path.is_dir() and not is_stdin:
        return _from_folder(path, roles, images, labels_from_folders)
    _refuse_options(path.name, labels_from_folders=labels_from_folders)
    if path.is_file() and is_image(path):
        _check_no_columns(roles, repr(path.name))
        return from_images(path.parent, [path], images)
    _refuse_options(path.name, size=size, skip_broken=skip_broken)
    if is_stdin:
        return from_table(text_to_table(decode(sys.stdin.buffer.read(), "standard input"), STDIN), roles, STDIN)
    if not path.exists():
        return _from_dataset(str(source), roles)
    return _from_file(path, roles, use_rep, allow_graph=allow_graph)


def _from_file(path: Path, roles: Roles, use_rep: str | None, *, allow_graph: bool) -> Input:
    """Read a table, an array, cells or texts, by the ending of the file."""
    if path.stat().st_size == 0:
        raise FileFormatError(
            f"{path.name!r} is an empty file", "check that it was written completely", code="empty_file", file=path.name
        )
    ending = table_ending(path)
    if ending is not None and (ending not in JSON_LINES or roles != Roles(text=roles.text) or _has_fields(path)):
        return from_table(read_table(path), roles, path.name)
    ending = path.suffix.lower()
    if ending == H5AD:
        return from_h5ad(path, roles, use_rep, allow_graph=allow_graph)
    if ending not in INPUT_READERS:
        raise FileFormatError(
            f"{path.name!r} has none of the known endings {', '.join(dict.fromkeys([*TABLES, *INPUT_READERS, H5AD]))}",
            "convert it to one of these formats",
            code="unsupported_file_type",
            file=path.name,
        )
    return INPUT_READERS[ending](path, roles)


def _refuse_options(name: str, **options: Any) -> None:
    """Raise an error for options that are given but are for other inputs."""
    for option, value in options.items():
        if value:
            raise InputError(
                f"{option} is for {INPUTS_OF_OPTIONS[option]}, but {name!r} is not one of these",
                f"leave {option} out",
                code="option_of_other_input",
                parameter=option,
                file=name,
                inputs=INPUTS_OF_OPTIONS[option],
            )


def _check_no_columns(roles: Roles, source: str) -> None:
    """Raise an error for options that name columns."""
    if roles != Roles():
        raise table_options_error(source)


def _has_fields(path: Path) -> bool:
    """Whether JSON lines are a table: objects without a field of texts, or in a file that has to be decompressed."""
    if path.suffix.lower() not in INPUT_READERS:
        return True
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    try:
        record = json.loads(first)
    except ValueError:
        return False
    return isinstance(record, dict) and not isinstance(record.get("text"), str)


def _check_is_dataset(name: str) -> None:
    """Raise an error if there is no data set of this name."""
    if name not in list_datasets():
        raise DataNotFoundError(
            f"there is no file, folder or data set {name!r}{did_you_mean(name, list_datasets())}",
            "check the path; fiedler.datasets.list_datasets() lists the data sets",
            code="no_such_source",
            value=name,
            suggestion=did_you_mean(name, list_datasets()),
        )


def _from_dataset(name: str, roles: Roles) -> Input:
    _check_no_columns(roles, f"the data set {name!r}")
    data = load(name, verbose=False)
    labels, class_names = np.asarray(data.y), [str(target) for target in data.target_names]
    if "image_shape" in data:
        return from_array(_as_images(data), name, labels, class_names)
    result = from_array(data.X, name, labels, class_names)  # raises an error for missing values
    if data.feature_names is None or issparse(data.X):
        return result
    return result._replace(kind="table", feature_names=[str(feature) for feature in data.feature_names])


def _as_images(data: Any) -> np.ndarray:
    """Return rows of pixels as images, whether they were flattened by row or by column."""
    return np.stack([row.reshape(data.image_shape, order=data.image_order) for row in data.X])


def _from_folder(folder: Path, roles: Roles, options: ImageOptions, labels_from_folders: bool) -> Input:
    """Read the tables, the images or the texts of a folder; a folder with images and texts is ambiguous."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not is_hidden(path.relative_to(folder)))
    files = [path for path in files if not path.name.startswith("_")]  # such as _SUCCESS, of a folder of Parquet files
    tables = [path for path in files if table_ending(path) is not None]
    if tables and len(tables) == len(files):
        given = {"size": options.size, "skip_broken": options.skip_broken, "labels_from_folders": labels_from_folders}
        _refuse_options(folder.name, **given)
        return from_table(read_tables(folder, tables), roles, folder.name)
    _check_no_columns(roles, f"the folder {folder.name!r}")
    images = [path for path in files if is_image(path)]
    texts = [path for path in files if path.suffix.lower() == ".txt"]
    if images and texts:
        raise InputError(
            f"the folder {folder.name!r} contains {len(images)} images and {len(texts)} texts",
            "put them into separate folders",
            code="images_and_texts",
            file=folder.name,
            n_images=len(images),
            n_texts=len(texts),
        )
    if not images and not texts:
        raise InputError(
            f"the folder {folder.name!r} contains no images and no .txt files, and not only tables",
            "choose a folder that does",
            code="empty_folder",
            file=folder.name,
        )
    if texts:
        _refuse_options(folder.name, skip_broken=options.skip_broken)
    data = from_images(folder, images, options) if images else _from_texts(folder, roles)
    return _label_by_folders(data, folder) if labels_from_folders else data


def _label_by_folders(data: Input, folder: Path) -> Input:
    """Take the class of each file from the first folder on its path; the class of files outside of one is unknown."""
    classes = [name.partition("/")[0] if "/" in name else None for name in data.row_names]
    class_names = sorted({name for name in classes if name is not None})
    if not class_names:
        raise InputError(
            f"the folder {folder.name!r} has no subfolders with files, from which classes could be taken",
            "put the files of each class into a subfolder, or leave labels_from_folders out",
            code="no_class_folders",
            file=folder.name,
        )
    codes = [-1 if name is None else class_names.index(name) for name in classes]
    return data._replace(labels=np.array(codes, dtype=np.int64), class_names=class_names)


def _from_texts(path: Path, roles: Roles) -> Input:
    if roles != Roles(text=roles.text):
        raise table_options_error(repr(path.name))
    documents = read_documents(path, column=roles.text)
    binary = next((name for text, name in zip(*documents) if "\0" in text), None)
    if binary is not None:
        raise FileFormatError(
            f"{binary!r} is not text: it contains binary data", "remove it", code="binary_file", file=binary
        )
    return Input("texts", documents.texts, documents.names)


INPUT_READERS: dict[str, Callable[[Path, Roles], Input]] = {
    ".npy": from_npy,
    ".npz": from_npz,
    ".jsonl": _from_texts,
    ".txt": _from_texts,
}

"""Read rows, blocks of rows or documents from any source; the ending of a file selects its format.

No document is dropped: empty and duplicate ones are kept, with a warning that gives their number and the first few.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._registry import import_papers
from .._validation import check_int, did_you_mean, first_few
from ..datasets import list_datasets, load
from ..errors import DataNotFoundError, FileFormatError, InputError, warn
from ..table.columns import Requests
from ..text.documents import Documents, check_documents
from . import formats
from .arrays import H5AD, ImageOptions, from_array, from_h5ad, from_images, is_image
from .blocks import Parts, count_rows, table_blocks
from .formats import FORMATS
from .record import Input, Roles, from_table, refuse_roles

STDIN = "standard input"
NO_FIELD = object()  # the value of a field that a JSON object does not have
MAX_SHOWN_CHARACTERS = 80  # of a path in a message

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
    missing: Sequence[str] | str = (),
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
        ``.parquet``, ``.feather`` or ``.arrow``), an ``.npy`` array, an ``.npz`` file with an array ``X`` or a sparse
        matrix, an ``.h5ad`` file of cells, a ``.jsonl`` file of texts or of objects with fields, a ``.txt`` file
        with one document, a folder of tables, of images or of ``.txt`` files, an image, a name of
        :func:`fiedler.datasets.list_datasets`, or ``"-"`` for a CSV table on standard input.
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
    missing : str or sequence of str
        Further words for missing values in tables, as whole cells, whatever the case of their letters.
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
    requests = Requests((), tuple(as_category), tuple(as_number), tuple(as_text), dict(weight or {}))
    roles = Roles(labels, id, text, tuple(drop), tuple(features), requests, is_new, names, row_weight)
    roles = roles._replace(missing=(missing,) if isinstance(missing, str) else tuple(missing))
    path = Path(source)
    check_source(source)
    images = ImageOptions(size, None if image_shape is None else tuple(image_shape), skip_broken)
    is_stdin = str(source) == "-"
    if is_stdin or path.suffix.lower() != H5AD:
        _refuse_options(path.name, use_rep=use_rep)
    if path.is_dir() and not is_stdin:
        return _from_folder(path, roles, images, labels_from_folders)
    _refuse_options(path.name, labels_from_folders=labels_from_folders)
    if path.is_file() and is_image(path):
        refuse_roles(roles, repr(path.name))
        return from_images(path.parent, [path], images)
    _refuse_options(path.name, size=size, skip_broken=skip_broken)
    if is_stdin:
        return from_table(formats.csv_table(formats.decode(sys.stdin.buffer.read(), STDIN), STDIN), roles, STDIN)
    if not path.exists():
        return _from_dataset(str(source), roles)
    return _from_file(path, roles, use_rep, allow_graph=allow_graph)


def _from_file(path: Path, roles: Roles, use_rep: str | None, *, allow_graph: bool) -> Input:
    """Read a table, an array, cells or texts, by the ending of the file."""
    if path.stat().st_size == 0:
        hint = "check that it was written completely"
        raise FileFormatError(f"{path.name!r} is an empty file", hint, code="empty_file", file=path.name)
    known = formats.file_format(path)
    if known is None or not known.has_rows:
        problem = f"{path.name!r} has none of the known endings {', '.join(e for e in FORMATS if FORMATS[e].has_rows)}"
        hint = "convert it to one of these formats"
        raise FileFormatError(problem, hint, code="unsupported_file_type", file=path.name)
    if known.rows is not None:
        options = {"use_rep": use_rep, "allow_graph": allow_graph} if known.rows is from_h5ad else {}
        return known.rows(path, roles, **options)
    has_only_texts = roles == Roles(text=roles.text)
    if known.table is None:
        refuse_roles(roles._replace(text=None), repr(path.name))
        return _from_documents(read_documents(path))
    if not known.has_bare_texts:
        return from_table(formats.read_table(path), roles, path.name)
    content = formats.read_text(path)
    if has_only_texts and not _has_fields(content):
        return _from_documents(check_documents(_json_documents(content, path.name, roles.text), repr(str(path))))
    return from_table(known.table(content, path.name), roles, path.name)


def _has_fields(content: str) -> bool:
    """Whether JSON lines are a table: objects without a field of texts."""
    try:
        record = json.loads(next((line for line in content.split("\n") if line.strip()), ""))
    except ValueError:
        return False
    return isinstance(record, dict) and not isinstance(record.get("text"), str)


def _from_documents(documents: Documents) -> Input:
    binary = next((name for text, name in zip(*documents) if "\0" in text), None)
    if binary is not None:
        problem = f"{binary!r} is not text: it contains binary data"
        raise FileFormatError(problem, "remove it", code="binary_file", file=binary)
    return Input("texts", documents.texts, documents.names)


def _refuse_options(name: str, **options: Any) -> None:
    """Raise an error for options that are given but are for other inputs."""
    for option, value in options.items():
        if value:
            inputs, hint = INPUTS_OF_OPTIONS[option], f"leave {option} out"
            problem = f"{option} is for {inputs}, but {name!r} is not one of these"
            about = {"parameter": option, "file": name, "inputs": inputs}
            raise InputError(problem, hint, code="option_of_other_input", **about)


def check_source(source: str | os.PathLike[str]) -> None:
    """Raise an error if an input is neither standard input nor an existing file, folder or data set."""
    name = str(source)
    if name != "-" and not Path(source).exists() and name not in list_datasets():
        suggestion = did_you_mean(name, list_datasets())
        problem = f"there is no file, folder or data set {name!r}{suggestion}"
        hint = "check the path; fiedler.datasets.list_datasets() lists the data sets"
        if not import_papers():
            hint = "check the path; for the data sets of the papers, install fiedler-papers: pip install ./papers"
        raise DataNotFoundError(problem, hint, code="no_such_source", value=name, suggestion=suggestion)


def _from_dataset(name: str, roles: Roles) -> Input:
    refuse_roles(roles, f"the data set {name!r}")
    data = load(name, verbose=False)
    labels, class_names = np.asarray(data.y), [str(target) for target in data.target_names]
    if "image_shape" in data:
        images = [row.reshape(data.image_shape, order=data.image_order) for row in data.X]  # flattened by row or column
        return from_array(np.stack(images), name, labels, class_names)
    result = from_array(data.X, name, labels, class_names)  # raises an error for missing values
    if data.feature_names is None or issparse(data.X):
        return result
    return result._replace(kind="table", feature_names=[str(feature) for feature in data.feature_names])


def _from_folder(folder: Path, roles: Roles, options: ImageOptions, labels_from_folders: bool) -> Input:
    """Read the tables, the images or the texts of a folder; a folder with images and texts is ambiguous."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_hidden(path, folder))
    files = [path for path in files if not path.name.startswith("_")]  # such as _SUCCESS, of a folder of Parquet files
    tables = [path for path in files if formats.is_table_file(path)]
    if tables and len(tables) == len(files):
        given = {"size": options.size, "skip_broken": options.skip_broken, "labels_from_folders": labels_from_folders}
        _refuse_options(folder.name, **given)
        return from_table(formats.read_tables(folder, tables), roles, folder.name)
    refuse_roles(roles, f"the folder {folder.name!r}")
    images = [path for path in files if is_image(path)]
    texts = [path for path in files if path.suffix.lower() == ".txt"]
    if images and texts:
        problem = f"the folder {folder.name!r} contains {len(images)} images and {len(texts)} texts"
        hint = "put them into separate folders"
        raise InputError(
            problem, hint, code="images_and_texts", file=folder.name, n_images=len(images), n_texts=len(texts)
        )
    if not images and not texts:
        problem = f"the folder {folder.name!r} contains no images and no .txt files, and not only tables"
        raise InputError(problem, "choose a folder that does", code="empty_folder", file=folder.name)
    if texts:
        _refuse_options(folder.name, skip_broken=options.skip_broken)
    data = from_images(folder, images, options) if images else _from_documents(read_documents(folder))
    return _label_by_folders(data, folder) if labels_from_folders else data


def _label_by_folders(data: Input, folder: Path) -> Input:
    """Take the class of each file from the first folder on its path; the class of files outside of one is unknown."""
    classes = [name.partition("/")[0] if "/" in name else None for name in data.row_names]
    class_names = sorted({name for name in classes if name is not None})
    if not class_names:
        problem = f"the folder {folder.name!r} has no subfolders with files, from which classes could be taken"
        hint = "put the files of each class into a subfolder, or leave labels_from_folders out"
        raise InputError(problem, hint, code="no_class_folders", file=folder.name)
    codes = [-1 if name is None else class_names.index(name) for name in classes]
    return data._replace(labels=np.array(codes, dtype=np.int64), class_names=class_names)


# -------------------------------------------------------------------------------------------------------------- blocks


def read_blocks(
    path: str | os.PathLike[str] | Any,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    block_rows: int | None = None,
) -> Any:
    """Open the rows of a file or of a folder of tables as a Dask array.

    Parameters
    ----------
    path : path or pyarrow.dataset.FileSystemDataset
        An ``.npy`` array; a table in a Parquet (``.parquet``) or Arrow file (``.arrow``, ``.feather``, ``.ipc``); a
        folder of tables, in the order of their names, those of subfolders included; a Zarr array (``.zarr``); or an
        Arrow data set of local files. The columns that the names of subfolders stand for are not read.
    columns : sequence of str, optional
        The columns of tables, of numbers or of vectors; by default all.
    drop : sequence of str
        Columns of tables to leave out.
    block_rows : int, optional
        The largest number of rows in a block; by default 131,072, or fewer in 64 MB. Blocks of tables are made of whole
        row groups (Parquet) or record batches (Arrow) where these are not larger.

    Returns
    -------
    dask.array.Array of shape (n, d)

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from fiedler.io import read_blocks
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
    >>> np.save(path, np.zeros((100, 3), dtype=np.float32))
    >>> read_blocks(path, block_rows=40).chunks
    ((40, 40, 20), (3,))
    """
    rows = None if block_rows is None else check_int(block_rows, "block_rows")
    if hasattr(path, "get_fragments"):
        return table_blocks(_files_of_dataset(path), columns, drop, rows)
    path = _existing(path)
    known = FORMATS.get(path.suffix.lower())
    if known is not None and known.blocks is not None:
        if columns is not None or drop:
            problem = f"the columns of {path.name!r} have no names"
            raise FileFormatError(problem, "leave out columns and drop", file=path.name)
        return known.blocks(path, rows)
    if not path.is_dir():
        return table_blocks([_with_parts(path)], columns, drop, rows)
    found = sorted(file for file in path.rglob("*") if file.is_file() and not _is_hidden(file, path, (".", "_")))
    files = [_with_parts(file) for file in found if file.suffix.lower() in _endings_of_parts()]
    if not files:
        hint = f"give a folder of {', '.join(_endings_of_parts())} files"
        raise FileFormatError(f"the folder {path.name!r} has no tables", hint, file=path.name)
    return table_blocks(files, columns, drop, rows)


def _endings_of_parts() -> list[str]:
    return [ending for ending, known in FORMATS.items() if known.parts is not None]


def _with_parts(file: Path) -> tuple[Path, Parts]:
    """Return a table and how its parts are read."""
    known = FORMATS.get(file.suffix.lower())
    if known is None or known.parts is None:
        problem = f"{file.name!r} is neither an array (.npy, .zarr) nor a table ({', '.join(_endings_of_parts())})"
        raise FileFormatError(problem, "convert the data to one of these", file=file.name)
    return file, known.parts


def _files_of_dataset(dataset: Any) -> list[tuple[Path, Parts]]:
    """Return the files of an Arrow data set, which must be local and contain no other rows than those of the set."""
    files = [_with_parts(_existing(file)) for file in getattr(dataset, "files", [])]
    if not files or sum(sum(count_rows(*file)) for file in files) != dataset.count_rows():
        problem = "the Arrow data set is filtered, or not made of files" if files else "the Arrow data set has no files"
        raise FileFormatError(problem, "write it to Parquet files first, with pyarrow.dataset.write_dataset")
    return files


def _existing(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a file, since workers may have another current folder."""
    absolute = Path(path).resolve()
    if not absolute.exists():
        raise DataNotFoundError(f"there is no file or folder {str(absolute)!r}", file=str(absolute))
    return absolute


def _is_hidden(path: Path, folder: Path, marks: tuple[str, ...] = (".",)) -> bool:
    """Whether the name of a file, or of a subfolder it is in, starts with a mark."""
    return any(part.startswith(marks) for part in path.relative_to(folder).parts)


# ----------------------------------------------------------------------------------------------------------- documents


def read_documents(
    source: Iterable[str] | str | os.PathLike[str], *, column: str | None = None, encoding: str | None = None
) -> Documents:
    """Read all documents of a source, in order.

    Parameters
    ----------
    source : iterable of str, or path
        The texts; or a folder (every ``.txt`` file in it and in its subfolders, sorted by name), a table such as a
        ``.csv``, ``.xlsx``, ``.parquet`` or ``.jsonl`` file, or a ``.txt`` file with one document.
    column : str, optional
        The column of a table, or field of a JSON object, that contains the text. By default the only one, or the one
        called "text".
    encoding : str, optional
        The encoding of the files; bytes that cannot be decoded become U+FFFD, with a warning that names the files. By
        default that of the byte-order mark, else UTF-8, or Windows-1252 with such a warning.

    Returns
    -------
    Documents
        The texts and their names.

    Examples
    --------
    >>> read_documents(["a first document", "a second one"]).names
    ['0', '1']
    """
    if not isinstance(source, str | os.PathLike):
        return check_documents(source)
    path = Path(source)
    if _is_folder(path):
        return check_documents(_folder_documents(path, encoding), repr(str(source)))
    known = formats.file_format(path)
    if known is None or not known.has_documents:
        endings = ", ".join(ending for ending, one in FORMATS.items() if one.has_documents)
        problem = f"{path.name!r} is not a supported source of documents"
        hint = f"pass a folder or a file that ends in {endings}"
        raise InputError(problem, hint, code="unsupported_file_type", file=str(path))
    content: Any = _decode([(path.name, formats.decompress(path))], encoding)[0] if known.is_text else path
    if known.table is None:
        documents = Documents([content], [path.name])
    elif known.has_bare_texts:
        documents = _json_documents(content, path.name, column)
    else:
        columns = (known.table(content, path.name) if known.is_text else known.table(path)).columns
        cells = columns[_choose_column(list(columns), column, path.name)]
        documents = _as_documents(path.name, "row", enumerate(cells, 1))
    return check_documents(documents, repr(str(source)))


def _is_folder(path: Path) -> bool:
    try:
        if path.exists():
            return path.is_dir()
    except OSError:  # too long for a file name
        pass
    name = str(path)
    shown = name if len(name) < MAX_SHOWN_CHARACTERS else name[:MAX_SHOWN_CHARACTERS] + "..."
    problem = f"there is no file or folder {shown!r}"
    raise DataNotFoundError(problem, "check the path; pass texts as a list", code="file_not_found", file=name)


def _folder_documents(folder: Path, encoding: str | None) -> Documents:
    paths = (path for path in folder.rglob("*.[tT][xX][tT]") if path.is_file())
    files = sorted(path for path in paths if not _is_hidden(path, folder))
    if not files:
        problem = f"the folder {str(folder)!r} contains no .txt files"
        hint = "pass a folder with one document per .txt file"
        raise InputError(problem, hint, code="no_documents", file=str(folder))
    texts = _decode([(str(path.relative_to(folder)), path.read_bytes()) for path in files], encoding)
    return Documents(texts, [path.relative_to(folder).as_posix() for path in files])


def _json_documents(content: str, name: str, field: str | None) -> Documents:
    """Return the texts in JSON lines, or those in a field of objects."""
    values = []
    for number, value in formats.json_lines(content, name):
        if isinstance(value, dict):
            field = field or _choose_column(list(value), None, name)  # chosen from the first object, for all
            value = value.get(field, NO_FIELD)
        if value is NO_FIELD:
            problem = f"{name!r}, line {number} has no field {field!r}"
            hint = "name another field with column="
            raise FileFormatError(problem, hint, code="no_such_field", file=name, line=number, column=field)
        values.append((number, value))
    return _as_documents(name, "line", values)


def _as_documents(file: str, unit: str, values: Iterable[tuple[int, Any]]) -> Documents:
    """Return texts by the numbers of their rows or lines; missing ones are empty."""
    documents = Documents([], [])
    for number, value in values:
        if value is not None and not isinstance(value, str):
            problem = f"{file!r}, {unit} {number} contains {type(value).__name__}, not text"
            hint = "name a column of texts with column="
            raise FileFormatError(problem, hint, code="not_text", file=file, **{unit: number})
        documents.texts.append(value or "")
        documents.names.append(f"{unit} {number}")
    return documents


def _choose_column(columns: Sequence[str], column: str | None, file: str) -> str:
    """Return the requested column, or the only one, or the one called "text"."""
    name = column or (columns[0] if len(columns) == 1 else "text")
    if name in columns:
        return name
    known = ", ".join(repr(known) for known in columns) or "none"
    problem = f"{file!r} has no column {name!r}{did_you_mean(name, columns)}; its columns are {known}"
    about = {"parameter": "column", "file": file, "column": name, "columns": list(columns)}
    raise InputError(problem, "name one with column=", code="no_such_column", **about)


def _decode(files: list[tuple[str, bytes]], encoding: str | None) -> list[str]:
    """Decode the contents of files in an encoding, with U+FFFD for the bytes that are not in it, or in their own."""
    if encoding is None:
        return formats.decode_files(files)
    texts, damaged = [], []
    for name, content in files:
        content = content.removeprefix(codecs.BOM_UTF8)
        try:
            texts.append(content.decode(encoding))
        except UnicodeDecodeError:
            texts.append(content.decode(encoding, errors="replace"))
            damaged.append(name)
        except LookupError:
            problem = f"encoding={encoding!r} is unknown"
            hint = "common ones are 'utf-8' and 'latin-1'"
            raise InputError(problem, hint, code="unknown_encoding", parameter="encoding", value=encoding) from None
    if damaged:
        problem = f"{len(damaged)} file(s) contain bytes that are not {encoding} ({first_few(damaged)})"
        problem += ", which were replaced by U+FFFD"
        hint = "if characters look wrong, pass the right encoding="
        warn(problem, hint, code="wrong_encoding", files=damaged, encoding=encoding, stacklevel=4)
    return texts

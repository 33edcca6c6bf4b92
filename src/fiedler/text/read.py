"""Read documents from a folder, a column of a table, a JSON lines file, or a list.

No document is dropped. Bytes that cannot be decoded are replaced, and empty and duplicate documents are kept; a warning
for each of these cases gives the number of documents and the first few names.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .._tables import csv_table, parquet_table, parse_json_line
from .._validation import did_you_mean, first_few
from ..errors import DataNotFoundError, FileFormatError, InputError, InputTypeError, warn

NO_FIELD = object()  # the value of a field that a JSON object does not have
MAX_SHOWN_CHARACTERS = 80  # of a path in a message


class Documents(NamedTuple):
    """Texts with their names.

    Attributes
    ----------
    texts : list of str
        The documents.
    names : list of str
        The file, line or row that each document comes from.

    Examples
    --------
    >>> from fiedler.text import read_documents
    >>> texts, names = read_documents(["a first document", "a second one"])
    >>> texts[1]
    'a second one'
    """

    texts: list[str]
    names: list[str]


def read_documents(
    source: Iterable[str] | str | os.PathLike[str], *, column: str | None = None, encoding: str = "utf-8"
) -> Documents:
    """Read all documents of a source, in order.

    Parameters
    ----------
    source : iterable of str, or path
        The texts; or a folder (every ``.txt`` file in it and in its subfolders, sorted by name), a ``.csv``,
        ``.parquet`` or ``.jsonl`` file, or a ``.txt`` file with one document.
    column : str, optional
        The column of a table, or field of a JSON object, that contains the text. By default the only one, or the one
        called "text".
    encoding : str, default='utf-8'
        The encoding of the files. Bytes that cannot be decoded become U+FFFD, with a warning that names the files.

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
        documents = as_documents(source)
    else:
        path = Path(source)
        reader = _from_folder if _is_folder(path) else TEXT_READERS.get(path.suffix.lower())
        if reader is None:
            raise InputError(
                f"{path.name!r} is not a supported source of documents",
                f"pass a folder or a file that ends in {', '.join(TEXT_READERS)}",
                code="unsupported_file_type",
                file=str(path),
            )
        documents = reader(path, column, encoding)
    if not documents.texts:
        name = repr(str(source)) if isinstance(source, str | os.PathLike) else "the list"
        raise InputError(f"{name} contains no documents", "pass at least one", code="no_documents")
    _warn_if_empty_or_duplicate(documents)
    return documents


def as_documents(texts: Iterable[str] | Documents) -> Documents:
    """Return documents named by their position, from any iterable of texts; :class:`Documents` as they are."""
    if isinstance(texts, Documents):
        return texts
    if isinstance(texts, str):
        raise InputError(
            "documents must be a list with one text each; got a single text",
            "pass a list, or use read_documents to read a path",
            code="single_text",
        )
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or not isinstance(texts, Iterable):
        raise InputTypeError(
            f"documents must be a list of texts; got {type(texts).__name__}",
            "of a table, pass one column",
            code="invalid_documents",
        )
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputTypeError(
                f"document {position} is {type(text).__name__}, not text",
                "convert it, or use '' for an empty document",
                code="invalid_document",
                row=position,
            )
    return Documents(texts, [str(position) for position in range(len(texts))])


def _is_folder(path: Path) -> bool:
    try:
        if path.exists():
            return path.is_dir()
    except OSError:  # too long for a file name
        pass
    name = str(path)
    shown = name if len(name) < MAX_SHOWN_CHARACTERS else name[:MAX_SHOWN_CHARACTERS] + "..."
    raise DataNotFoundError(
        f"there is no file or folder {shown!r}",
        "check the path; pass texts as a list",
        code="file_not_found",
        file=name,
    )


# -------------------------------------------------------------------------------------------------------------- sources


def is_hidden(path: Path) -> bool:
    """Whether the name of a file, or of a folder it is in, starts with a dot."""
    return any(part.startswith(".") for part in path.parts)


def _from_folder(folder: Path, column: str | None, encoding: str) -> Documents:
    paths = (path for path in folder.rglob("*.[tT][xX][tT]") if path.is_file())
    files = sorted(path for path in paths if not is_hidden(path.relative_to(folder)))
    if not files:
        raise InputError(
            f"the folder {str(folder)!r} contains no .txt files",
            "pass a folder with one document per .txt file",
            code="no_documents",
            file=str(folder),
        )
    texts = _decode([(str(path.relative_to(folder)), path.read_bytes()) for path in files], encoding)
    return Documents(texts, [path.relative_to(folder).as_posix() for path in files])


def _from_file(path: Path, column: str | None, encoding: str) -> Documents:
    return Documents(_decode([(path.name, path.read_bytes())], encoding), [path.name])


def _from_csv(path: Path, column: str | None, encoding: str) -> Documents:
    (content,) = _decode([(path.name, path.read_bytes())], encoding)
    columns = csv_table(content, path.name).columns
    texts = columns[_choose_column(list(columns), column, path)]
    return Documents(texts, [f"row {number}" for number in range(1, len(texts) + 1)])


def _from_json_lines(path: Path, column: str | None, encoding: str) -> Documents:
    texts, names, field = [], [], column
    (content,) = _decode([(path.name, path.read_bytes())], encoding)
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        record = parse_json_line(line, path.name, number)
        if isinstance(record, dict):
            field = field or _choose_column(list(record), None, path)  # chosen from the first object, for all
            record = record.get(field, NO_FIELD)
        if record is NO_FIELD:
            raise FileFormatError(
                f"{path.name!r}, line {number} has no field {field!r}",
                "name another field with column=",
                code="no_such_field",
                file=path.name,
                line=number,
                column=field,
            )
        if record is not None and not isinstance(record, str):
            raise _not_text(path, f"line {number}", record, line=number)
        texts.append(record or "")
        names.append(f"line {number}")
    return Documents(texts, names)


def _from_parquet(path: Path, column: str | None, encoding: str) -> Documents:
    table = parquet_table(path)
    values = table.columns[_choose_column(list(table.columns), column, path)]
    for row, (location, value) in enumerate(zip(table.locations, values), 1):
        if value is not None and not isinstance(value, str):
            raise _not_text(path, location, value, row=row)
    return Documents([value or "" for value in values], table.locations)


def _not_text(path: Path, location: str, value: object, **fields: int) -> FileFormatError:
    return FileFormatError(
        f"{path.name!r}, {location} contains {type(value).__name__}, not text",
        "name a column of texts with column=",
        code="not_text",
        file=path.name,
        **fields,
    )


TEXT_READERS: dict[str, Callable[[Path, str | None, str], Documents]] = {
    ".csv": _from_csv,
    ".jsonl": _from_json_lines,
    ".parquet": _from_parquet,
    ".txt": _from_file,
}


def _choose_column(columns: Sequence[str], column: str | None, path: Path) -> str:
    """Return the requested column, or the only one, or the one called "text"."""
    name = column or (columns[0] if len(columns) == 1 else "text")
    if name in columns:
        return name
    known = ", ".join(repr(known) for known in columns) or "none"
    raise InputError(
        f"{path.name!r} has no column {name!r}{did_you_mean(name, columns)}; its columns are {known}",
        "name one with column=",
        code="no_such_column",
        parameter="column",
        file=path.name,
        column=name,
        columns=list(columns),
    )


# --------------------------------------------------------------------------------------------------------------- checks


def _decode(files: list[tuple[str, bytes]], encoding: str) -> list[str]:
    """Decode the contents of files; replace bytes that cannot be decoded, with a warning."""
    texts, damaged = [], []
    for name, content in files:
        content = content.removeprefix(codecs.BOM_UTF8)
        try:
            texts.append(content.decode(encoding))
        except UnicodeDecodeError:
            texts.append(content.decode(encoding, errors="replace"))
            damaged.append(name)
        except LookupError:
            raise InputError(
                f"encoding={encoding!r} is unknown",
                "common ones are 'utf-8' and 'latin-1'",
                code="unknown_encoding",
                parameter="encoding",
                value=encoding,
            ) from None
    if damaged:
        warn(
            f"{len(damaged)} file(s) contain bytes that are not {encoding} ({first_few(damaged)}), which were replaced "
            "by U+FFFD",
            "if characters look wrong, pass the right encoding=",
            code="wrong_encoding",
            files=damaged,
            encoding=encoding,
            stacklevel=4,
        )
    return texts


def _warn_if_empty_or_duplicate(documents: Documents) -> None:
    empty = [name for text, name in zip(*documents) if not text.strip()]
    if empty:
        warn(
            f"{len(empty)} document(s) are empty ({first_few(empty)}); they are kept and are similar to no other",
            code="empty_documents",
            n_documents=len(empty),
            names=empty,
            stacklevel=3,
        )
    seen: set[str] = set()
    duplicates = []
    for text, name in zip(*documents):
        if text in seen:
            duplicates.append(name)
        elif text.strip():
            seen.add(text)
    if duplicates:
        warn(
            f"{len(duplicates)} document(s) are copies of others ({first_few(duplicates)}); all are kept",
            code="duplicate_documents",
            n_documents=len(duplicates),
            names=duplicates,
            stacklevel=3,
        )

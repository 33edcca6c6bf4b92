"""Documents from where people keep them: a folder, a column of a table, JSON lines, or a list.

Nothing is left out on the way. Bytes that are no UTF-8 are replaced, documents without a word and documents that repeat
another stay in their place, and one warning for each of these says how many and which.
"""

from __future__ import annotations

import codecs
import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._tables import csv_table, parquet_table
from .._validation import first_few

MISSING = object()


class Documents(NamedTuple):
    """Texts and a name for each: the file, the line or the row it came from.

    Attributes
    ----------
    texts : list of str
    names : list of str

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
    """All documents of a source, in order.

    Parameters
    ----------
    source : iterable of str, or path
        The texts themselves; or a folder (every ``.txt`` file in it and below, by name), or a ``.csv``, ``.parquet`` or
        ``.jsonl`` file, or a ``.txt`` file of one document.
    column : str, optional
        Which column of a table, or field of a JSON object, holds the text. Not needed if there is only one, or one
        called "text".
    encoding : str, default='utf-8'
        Of the files. Bytes that it cannot read become U+FFFD, with a warning that names the files.

    Returns
    -------
    Documents
        Texts and names.

    Examples
    --------
    >>> read_documents(["a first document", "a second one"]).names
    ['0', '1']
    """
    if not isinstance(source, str | os.PathLike):
        documents = as_documents(source)
    else:
        path = Path(source)
        reader = _from_folder if _is_folder(path) else READERS.get(path.suffix.lower())
        if reader is None:
            raise ValueError(f"{path.name!r} is no source of documents; these are: a folder, {', '.join(READERS)}")
        documents = reader(path, column, encoding)
    if not documents.texts:
        raise ValueError(f"{_called(source)} holds no documents")
    _warn_of_oddities(documents)
    return documents


def as_documents(texts: Any) -> Documents:
    """Texts from any iterable of them, named by their position; a record of documents as it is."""
    if isinstance(texts, Documents):
        return texts
    if isinstance(texts, str):
        raise ValueError("documents are given as a list, one text each; got a single text (read_documents reads paths)")
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or not isinstance(texts, Iterable):
        raise TypeError(f"documents are a list of texts, not {type(texts).__name__}; of a table pass one column")
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"document {position} is {type(text).__name__}, not text; convert it, or use '' for none")
    return Documents(texts, [str(position) for position in range(len(texts))])


def _is_folder(path: Path) -> bool:
    try:
        if path.exists():
            return path.is_dir()
    except OSError:  # too long to be a name
        pass
    shown = str(path) if len(str(path)) < 80 else str(path)[:80] + "..."
    raise FileNotFoundError(f"there is no file or folder {shown!r}; a list of texts is given as a list")


# ------------------------------------------------------------------------------------------------- where they come from


def is_hidden(path: Path) -> bool:
    """Whether a file, or a folder it is in, has a name that begins with a point."""
    return any(part.startswith(".") for part in path.parts)


def _from_folder(folder: Path, column: str | None, encoding: str) -> Documents:
    found = (path for path in folder.rglob("*.[tT][xX][tT]") if path.is_file())
    files = sorted(path for path in found if not is_hidden(path.relative_to(folder)))
    if not files:
        raise ValueError(f"the folder {str(folder)!r} holds no .txt files")
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
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path.name!r}, line {number} is not JSON: {error}") from error
        if isinstance(record, dict):
            field = field or _choose_column(list(record), None, path)  # of the first; the same for all
            record = record.get(field, MISSING)
        if record is not None and not isinstance(record, str):
            what = f"no field {field!r}" if record is MISSING else f"{type(record).__name__}, not text"
            raise ValueError(f"{path.name!r}, line {number} holds {what}")
        texts.append(record or "")
        names.append(f"line {number}")
    return Documents(texts, names)


def _from_parquet(path: Path, column: str | None, encoding: str) -> Documents:
    table = parquet_table(path)
    values = table.columns[_choose_column(list(table.columns), column, path)]
    for place, value in zip(table.places, values):
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{path.name!r}, {place}: the column holds {type(value).__name__}, not text")
    return Documents([value or "" for value in values], table.places)


READERS: dict[str, Callable[[Path, str | None, str], Documents]] = {
    ".csv": _from_csv,
    ".jsonl": _from_json_lines,
    ".parquet": _from_parquet,
    ".txt": _from_file,
}


def _choose_column(columns: Sequence[str], column: str | None, path: Path) -> str:
    """The column asked for, or the only one, or the one called "text"."""
    wanted = column or (columns[0] if len(columns) == 1 else "text")
    if wanted in columns:
        return wanted
    known = ", ".join(repr(name) for name in columns) or "none"
    raise ValueError(f"{path.name!r} has no column {wanted!r}; its columns are {known}: give one as column=")


# ---------------------------------------------------------------------------------------------------- what may be odd


def _decode(files: list[tuple[str, bytes]], encoding: str) -> list[str]:
    """The contents as text; what cannot be read is replaced, and said."""
    texts, damaged = [], []
    for name, content in files:
        content = content.removeprefix(codecs.BOM_UTF8)
        try:
            texts.append(content.decode(encoding))
        except UnicodeDecodeError:
            texts.append(content.decode(encoding, errors="replace"))
            damaged.append(name)
        except LookupError:
            raise ValueError(f"encoding={encoding!r} is unknown; 'utf-8' and 'latin-1' are usual") from None
    if damaged:
        _warn(
            5,
            f"{len(damaged)} file(s) hold bytes that are not {encoding} ({first_few(damaged)}); they were replaced by "
            "U+FFFD: if accents look wrong, give the right encoding=",
        )
    return texts


def _warn_of_oddities(documents: Documents) -> None:
    empty = [name for text, name in zip(*documents) if not text.strip()]
    if empty:
        _warn(4, f"{len(empty)} document(s) are empty ({first_few(empty)}); they are kept, and resemble nothing")
    counts = Counter(text for text in documents.texts if text.strip())
    repeated = sum(count - 1 for count in counts.values())
    if repeated:
        firsts: set[str] = set()
        copies = [n for t, n in zip(*documents) if counts[t] > 1 and (t in firsts or firsts.add(t))]  # type: ignore[func-returns-value]
        _warn(4, f"{repeated} document(s) repeat another word for word ({first_few(copies)}); all are kept")


def _warn(level: int, text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=level)


def _called(source: Any) -> str:
    return repr(str(source)) if isinstance(source, str | os.PathLike) else "the list"

"""The folder of results: checked before the work, and written completely or not at all.

Files are written to a temporary folder. If the folder of results does not exist, the temporary one is renamed to it.
Otherwise it is renamed to `FINISHED` inside the folder of results, which may contain other files. From that moment on
the results are the new ones, even if the process is killed: whichever command uses the folder next moves them to their
places first. An update keeps the files that it replaces in `PREVIOUS`, from which they can be restored.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .._files import DRAFT_PREFIX, atomic_write, draft_name, remove_drafts
from ..errors import InputError
from ..io import Input
from ..io.formats import COMPRESSIONS
from ..io.record import CsvStyle
from ..persistence import read_notes, save
from ..report import write_report, write_summary
from .output import printable

FINISHED = ".fiedler-finished"  # the folder of results that have to be moved to their places
PREVIOUS = ".fiedler-previous"  # the folder of the results before the last update
FILES = ("labels.csv", "model.safetensors", "summary.json", "report.html")
LABELS_FILE, MODEL_FILE, SUMMARY_FILE, PAGE_FILE = FILES

TABLE_FILE = "table.csv"  # of --append
MEMBERSHIP_DECIMALS = 4  # in CSV files
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # with which a formula begins in spreadsheets
Levels = Mapping[int, np.ndarray]  # from the number of clusters of a level to its labels
COMMAS = CsvStyle()
NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?")


def source_name(source: str) -> str:
    """Return the short name of an input: a file without its endings, a folder, or a data set."""
    if source == "-":
        return "stdin"
    path = Path(source)
    if path.is_dir():
        return path.resolve().name
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSIONS else path.stem


def source_title(source: str) -> str:
    """Return the name of an input in messages."""
    return "standard input" if source == "-" else Path(source).name


def command_line() -> str:
    """Return the command line of this process."""
    return shlex.join(["fiedler", *sys.argv[1:]])


def relative_source(folder: Path, source: str) -> str:
    """Return the path of an input relative to its results, so that both can be moved; a data set keeps its name.

    Examples
    --------
    >>> relative_source(Path("out/moons"), "two_moons")
    'two_moons'
    """
    path = Path(source)
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix() if path.exists() else source


def check_folder(folder: Path, source: str, *, force: bool, append: bool = False) -> None:
    """Check before the work that results can be written to a folder and would not replace those of another input."""
    if append and (folder / TABLE_FILE).resolve() == Path(source).resolve():
        problem = f"contains the input {TABLE_FILE}, and --append would replace it"
        raise _out_error(folder, problem, code="replaces_input")
    if folder.exists() and not folder.is_dir():
        raise _out_error(folder, "is a file, not a folder for results", code="not_a_folder")
    try:  # create and remove a temporary folder where the draft will be
        os.rmdir(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=_nearest_existing(folder)))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _out_error(folder, f"cannot be written to ({reason})", code="not_writable") from None
    finish_results(folder)
    names = (*FILES, TABLE_FILE) if append else FILES
    existing = next((name for name in names if (folder / name).exists()), None)
    if existing and not force and (origin := _origin(folder)) != relative_source(folder, source):
        content = f"{existing}, which was not written by fiedler"
        if origin is not None:
            path = os.path.normpath(folder / origin)  # as seen from the working directory
            content = f"the results of {(path if os.path.exists(path) else origin)!r}"
        problem = f"{str(folder)!r} contains {content}"
        raise InputError(problem, "choose another --out, or replace them with --force", code="results_exist")


def check_file(path: Path | None) -> None:
    """Check before the work that a result can be written to a file."""
    if path is not None and path.is_dir():
        raise _out_error(path, "is a folder", code="not_a_file")
    if path is not None and not path.parent.is_dir():
        raise _out_error(path, f"cannot be written: there is no folder {str(path.parent)!r}", code="no_such_folder")


def _out_error(path: Path, problem: str, *, code: str) -> InputError:
    return InputError(f"{str(path)!r} {problem}", "choose another --out", code=code, file=str(path))


def _origin(folder: Path) -> str | None:
    """Return the input of the results in a folder, relative to it; None if they are not from fiedler."""
    try:
        return read_notes(folder / MODEL_FILE).get("source")
    except (OSError, ValueError):
        return None


def _nearest_existing(folder: Path) -> Path:
    """Return the folder, or the nearest parent that exists."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder whose files replace those in ``folder`` on success, all or none."""
    folder = Path(os.path.realpath(folder))  # of a link, and without ".."
    place = _nearest_existing(folder)
    for drafts in (place, folder.absolute().parent):  # where a run has written when the folder did not exist
        remove_drafts(drafts)
    draft = place / draft_name()
    draft.mkdir()
    try:
        yield draft
        with _uninterrupted():  # make the files of the draft the results, by one rename
            if folder.exists():
                finish_results(folder)
                draft.replace(folder / FINISHED)
                finish_results(folder)
            else:
                folder.parent.mkdir(parents=True, exist_ok=True)
                draft.replace(folder)
    finally:
        with _uninterrupted():
            shutil.rmtree(draft, ignore_errors=True)


def finish_results(folder: Path) -> None:
    """Move the files of a finished run to their places, if it was killed before it could.

    The model is the last one of the files that every run writes, and what only some runs write is moved after it: as
    long as it is not in its place, it can be seen that the run has written it.
    """
    finished = folder / FINISHED
    if not finished.is_dir():
        return
    if not (finished / PREVIOUS).exists():
        shutil.rmtree(folder / PREVIOUS, ignore_errors=True)
    if not (finished / TABLE_FILE).exists() and _has_table(folder):  # of an earlier run, which has other clusters
        (folder / TABLE_FILE).unlink(missing_ok=True)
    last = ("", MODEL_FILE, TABLE_FILE, PREVIOUS)
    for path in sorted(finished.iterdir(), key=lambda path: last.index(path.name) if path.name in last else 0):
        if path.is_dir():
            shutil.rmtree(folder / path.name, ignore_errors=True)
        path.replace(folder / path.name)
    finished.rmdir()


def keep_previous(folder: Path, draft: Path) -> None:
    """Keep the files of results that a draft will replace, as a part of the draft."""
    (draft / PREVIOUS).mkdir()
    for name in (*FILES, *([TABLE_FILE] if _has_table(folder) else [])):
        if (folder / name).is_file():
            _link(folder / name, draft / PREVIOUS / name)


def restore_previous(folder: Path) -> None:
    """Replace results by those before the last update; a table that is not of fiedler stays."""
    previous = folder / PREVIOUS
    if not (previous / MODEL_FILE).is_file():
        problem = f"there is no update to undo in {str(folder)!r}"
        hint = "only the last update can be undone, and only until the rows are clustered again"
        raise InputError(problem, hint, code="no_update")
    with atomic_folder(folder) as draft:
        for path in previous.iterdir():
            if path.name in FILES or (path.name == TABLE_FILE and not (folder / TABLE_FILE).exists()):
                _link(path, draft / path.name)


def _has_table(folder: Path) -> bool:
    """Whether the table in a folder of results was written with them."""
    try:
        return bool(read_notes(folder / MODEL_FILE).get("append"))
    except (OSError, ValueError):
        return False


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the file system has no links; files are never changed in place."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Defer an interrupt (Ctrl-C) to the end of the block, so that all files are moved or removed."""
    in_main_thread = threading.current_thread() is threading.main_thread()  # the only one that is interrupted
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if received:
        raise KeyboardInterrupt


def write_files(folder: Path, model: Any, notes: dict[str, Any], summary: dict[str, Any]) -> None:
    """Write the model, the summary and the report of a clustering."""
    save(model, folder / MODEL_FILE, notes=notes)
    write_summary(summary, folder / SUMMARY_FILE)
    write_report(summary, folder / PAGE_FILE)


# ------------------------------------------------------------------------------------------------------ tables of rows


def save_csv(path: Path, write: Callable[..., None], *content: Any) -> None:
    """Write a table by :func:`write_labels` or :func:`write_table` to a file, completely or not at all."""
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        write(file, *content)


def check_append(data: Input, append: bool) -> None:
    """Raise an error if there is no table to which results could be added."""
    if append and data.table is None:
        raise InputError("--append is for tables, but the input is not one", "leave it out", code="no_table")


def write_table(
    file: TextIO, data: Input, labels: np.ndarray, confidence: np.ndarray | None, levels: Levels | None = None
) -> None:
    """Write the columns of a table as they are in its file, with the cluster and the confidence of each row."""
    assert data.table is not None
    style, columns = data.style, data.table.columns
    added: dict[str, Any] = {"cluster": labels.tolist()}
    if confidence is not None:
        added["confidence"] = [_decimal(value, style) for value in confidence]
    added |= _level_columns(levels)
    listed = (cells.tolist() if isinstance(cells, np.ndarray) else cells for cells in columns.values())
    write_row = _row_writer(file, style)
    write_row([*map(data.table.header, columns), *free_names(added, columns)])
    for row in zip(*listed, *added.values()):
        write_row(row)


def free_names(names: Iterable[str], taken: Collection[str]) -> list[str]:
    """Return names of columns that are not taken, with underscores where they were.

    Examples
    --------
    >>> free_names(["cluster", "confidence"], ["cluster", "cluster_"])
    ['cluster__', 'confidence']
    """
    free = []
    for name in names:
        while name in taken:
            name = f"{name}_"
        free.append(name)
    return free


def _decimal(value: float, style: CsvStyle) -> str:
    return f"{value:.{MEMBERSHIP_DECIMALS}f}".replace(".", style.decimal)


def _level_columns(levels: Levels | None) -> dict[str, list[int]]:
    """Return the labels of each level under the name of their column."""
    return {f"level_{n_clusters}": labels.tolist() for n_clusters, labels in (levels or {}).items()}


def _row_writer(file: TextIO, style: CsvStyle) -> Callable[[Iterable[Any]], Any]:
    """Return the function that writes a row of CSV in safe cells; in a terminal, control characters are written out."""
    writer = csv.writer(file, delimiter=style.delimiter, lineterminator="\n")
    if not file.isatty():
        return lambda row: writer.writerow(map(safe_cell, row))
    return lambda row: writer.writerow(printable(c) if isinstance(c := safe_cell(cell), str) else c for cell in row)


def safe_cell(cell: Any) -> Any:
    """Return a cell of a CSV file that spreadsheets do not take for a formula: with an apostrophe in front.

    Examples
    --------
    >>> safe_cell("=cmd|' /C calc'!A0"), safe_cell("-5.5"), safe_cell("Anna")
    ("'=cmd|' /C calc'!A0", '-5.5', 'Anna')
    """
    if not isinstance(cell, str) or not cell.startswith(FORMULA_SIGNS) or NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def original_cell(cell: str) -> str:
    """Return a cell as it was before :func:`safe_cell`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_SIGNS) else cell


def write_labels(
    file: TextIO,
    ids: list[str],
    labels: np.ndarray,
    memberships: np.ndarray | None,
    cluster_names: list[str | None] | None = None,
    id_name: str = "id",
    levels: Levels | None = None,
    style: CsvStyle = COMMAS,
) -> None:
    """Write one CSV row per sample: id, cluster and its name (if any), confidence, memberships, other levels."""
    write_row = _row_writer(file, style)
    shares = np.empty((len(labels), 0)) if memberships is None else memberships
    cluster_names = cluster_names if any(cluster_names or ()) else None
    soft = [] if memberships is None else ["confidence", *(f"cluster_{k}" for k in range(shares.shape[1]))]
    columns = _level_columns(levels)
    names = ["cluster", *(["cluster_name"] if cluster_names else []), *soft, *columns]
    write_row([id_name, *free_names(names, [id_name])])
    others = zip(*columns.values()) if columns else repeat(())
    for row_id, label, row, other in zip(ids, labels.tolist(), shares, others):
        name = [(cluster_names[label] if label >= 0 else None) or ""] if cluster_names else []
        numbers = [row.max(), *row] if soft else []
        write_row([row_id, label, *name, *(_decimal(value, style) for value in numbers), *other])

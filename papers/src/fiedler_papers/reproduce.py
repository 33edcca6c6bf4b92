"""A paper's table made again: run what is missing, lay ours beside the published, write the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fiedler._files import atomic_write

from .figures import draw
from .layout import as_csv, as_markdown, side_by_side
from .protocol import PACKAGED, Cell, Experiment, Protocol, load_protocol
from .records import Record, RecordFile, key_of, read_archive, write_archive
from .run import missing, run_cells, without_package
from .tables import Line, lines

ARCHIVE = "records.jsonl.xz"


@dataclass(frozen=True)
class Plan:
    """What a call will do: the cells to run, those at hand, and the methods that cannot run here."""

    protocol: Protocol
    experiments: list[Experiment]
    cells: list[Cell]
    todo: list[Cell]
    skipped: dict[str, str]  # method to the package it needs
    file: RecordFile
    backend: str
    archived: bool

    @property
    def records(self) -> list[Record]:
        """All records at hand for this paper: own runs, and the archive where it is asked for."""
        return known_records(self.protocol, self.file, archived=self.archived)


def known_records(protocol: Protocol, file: RecordFile, *, archived: bool) -> list[Record]:
    """Own records, those of the paper that is borrowed from, and archived ones; own ones last, so that they count."""
    kept = archived_records(protocol) if archived else []
    keys = filter(None, (protocol.borrows, protocol.key))
    return kept + [one for key in keys for one in RecordFile(file.path.parent.parent / key / file.path.name).read()]


def archived_records(protocol: Protocol) -> list[Record]:
    """The records that come with the package, those of the paper that is borrowed from first."""
    keys = filter(None, (protocol.borrows, protocol.key))
    return [record for key in keys for record in read_archive(protocol.folder.parent / key / ARCHIVE)]


def plan(
    key: str,
    *,
    table: str | None = None,
    figure: str | None = None,
    draws: int | None = None,
    only: Sequence[str] = (),
    backend: str = "numpy",
    archived: bool = False,
    out: Path = Path("out") / "reproduce",
    papers: Path | None = None,
) -> Plan:
    """Which cells a table needs and which of them have no record yet.

    Parameters
    ----------
    key : str
        Of the paper, as :func:`list_protocols` has it.
    table, figure : str, optional
        A table or figure; all of them by default.
    draws : int, optional
        At most so many draws of each cell.
    only : sequence of str
        Words that a cell must hold: a data set, a method, ``k=5``.
    backend : {'numpy', 'torch', 'cupy'}
    archived : bool, default=False
        Whether the records that come with the package count, so that nothing of them is run again.
    out : path
        Records and results are kept in ``out / key``.
    papers : path, optional
        The folder of the papers, if it is another one.
    """
    protocol = load_protocol(key, papers)
    cells = protocol.cells(table=table, figure=figure, draws=draws, only=only)
    file = RecordFile(Path(out) / key / "records.jsonl")
    used = {cell.method for cell in cells}
    skipped = without_package(protocol.methods[name] for name in used)
    known = known_records(protocol, file, archived=archived)
    todo = [cell for cell in missing(cells, known, None if archived else backend) if cell.method not in skipped]
    return Plan(protocol, protocol.chosen(table, figure), cells, todo, skipped, file, backend, archived)


def carry_out(work: Plan, *, n_jobs: int = 1, tell: Callable[[Record], None] | None = None) -> list[Record]:
    """Run what is missing."""
    return run_cells(work.todo, work.file, backend=work.backend, n_jobs=n_jobs, tell=tell) if work.todo else []


def compare(work: Plan) -> dict[str, list[Line]]:
    """The lines of every table of the plan, from the records at hand, by experiment."""
    records = work.records
    found = {one.key: lines(work.protocol, one, records, work.backend) for one in work.experiments if one.scores}
    return {key: of for key, of in found.items() if of}


def archive(work: Plan) -> Path:
    """Add the records at hand to those that come with the package; what the protocol no longer asks for is dropped."""
    protocol, path = work.protocol, work.protocol.folder / ARCHIVE
    if PACKAGED in path.parents:
        raise ValueError("records are kept in a working copy of fiedler, not in an installed package")
    wanted = {cell.key for cell in protocol.cells() if cell.method in protocol.own}
    known = [*read_archive(path), *work.file.read()]
    kept = {(*key_of(one), one["backend"]): one for one in known if key_of(one) in wanted and "error" not in one}
    write_archive(path, kept.values())
    return path


def write_results(work: Plan, found: dict[str, list[Line]]) -> list[Path]:
    """CSV and Markdown files of the lines, and the figures if matplotlib is there, beside the records."""
    folder, written = work.file.path.parent, []
    folder.mkdir(parents=True, exist_ok=True)
    for key, of in found.items():
        title = work.protocol.experiments[key].title
        texts = {".csv": as_csv(of), ".md": f"# {title}\n\n{as_markdown(side_by_side(of))}\n"}
        for ending, text in texts.items():
            path = folder / f"{key}{ending}"
            with atomic_write(path) as draft:
                draft.write_text(text, encoding="utf-8")
            written.append(path)
    if find_spec("matplotlib") is None:
        return written
    return written + draw(work.protocol, work.experiments, work.records, folder, work.backend)

"""Reproduce a table of a paper: run what is missing, compare with the published figures, write the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fiedler._files import atomic_write
from fiedler.errors import InputError

from .figures import write_figures
from .layout import as_csv, as_markdown, comparison_rows
from .protocol import INSTALLED_FOLDER, Cell, Experiment, Protocol, load_protocol
from .records import Record, RecordFile, read_archive, record_key, write_archive
from .run import RecordCallback, missing_cells, missing_packages, run_cells
from .tables import TableLine, table_lines

ARCHIVE_NAME = "records.jsonl.xz"


@dataclass(frozen=True)
class Plan:
    """The cells of a request, those that have to be run, and the methods that cannot be run."""

    protocol: Protocol
    experiments: list[Experiment]
    cells: list[Cell]
    cells_to_run: list[Cell]
    skipped: dict[str, str]  # methods with the package that each needs and that is not installed
    record_file: RecordFile
    backend: str
    archived: bool

    @property
    def records(self) -> list[Record]:
        """All records of this paper: of your runs, and of the archive if the plan includes it."""
        return known_records(self.protocol, self.record_file, archived=self.archived)


def known_records(protocol: Protocol, file: RecordFile, *, archived: bool) -> list[Record]:
    """Return archived records, then those of your runs, which take precedence."""
    records = archived_records(protocol) if archived else []
    folder, name = file.path.parent.parent, file.path.name
    return records + [record for key in _keys(protocol) for record in RecordFile(folder / key / name).read()]


def archived_records(protocol: Protocol) -> list[Record]:
    """Return the records that come with the package."""
    folder = protocol.folder.parent
    return [record for key in _keys(protocol) for record in read_archive(folder / key / ARCHIVE_NAME)]


def _keys(protocol: Protocol) -> Iterator[str]:
    """Yield the papers whose records count: the one that is borrowed from, then the paper itself."""
    return filter(None, (protocol.borrows, protocol.key))


def make_plan(
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
    """Determine which cells a table needs and which of them have no record yet.

    Parameters
    ----------
    key : str
        The paper, one of :func:`list_protocols`.
    table, figure : str, optional
        A table or figure; all of them by default.
    draws : int, optional
        The maximum number of draws per cell.
    only : sequence of str
        Terms that a cell must match: a data set, a method, ``k=5``.
    backend : {'numpy', 'torch', 'cupy'}
    archived : bool, default=False
        Whether to use the records that come with the package instead of running their cells again.
    out : path
        Records and results are written to ``out / key``.
    papers : path, optional
        The folder that contains the papers' folders; by default that of the package.
    """
    protocol = load_protocol(key, papers)
    cells = protocol.cells(table=table, figure=figure, draws=draws, only=only)
    file = RecordFile(Path(out) / key / "records.jsonl")
    skipped = missing_packages(protocol.methods[name] for name in {cell.method for cell in cells})
    records = known_records(protocol, file, archived=archived)
    missing = missing_cells(cells, records, None if archived else backend)
    to_run = [cell for cell in missing if cell.method not in skipped]
    experiments = protocol.select_experiments(table, figure)
    return Plan(protocol, experiments, cells, to_run, skipped, file, backend, archived)


def run_plan(plan: Plan, *, n_jobs: int = 1, on_record: RecordCallback | None = None) -> list[Record]:
    """Run the missing cells of a plan and return their records."""
    if not plan.cells_to_run:
        return []
    return run_cells(plan.cells_to_run, plan.record_file, backend=plan.backend, n_jobs=n_jobs, on_record=on_record)


def compare_with_published(plan: Plan) -> dict[str, list[TableLine]]:
    """Return the lines of every table of a plan that has records, by experiment."""
    records = plan.records
    lines = {
        experiment.key: table_lines(plan.protocol, experiment, records, plan.backend)
        for experiment in plan.experiments
        if experiment.scores
    }
    return {key: table for key, table in lines.items() if table}


def add_to_archive(plan: Plan) -> Path:
    """Add the records of your runs to the archive, and drop records that the protocol no longer asks for."""
    protocol, path = plan.protocol, plan.protocol.folder / ARCHIVE_NAME
    if INSTALLED_FOLDER in path.parents:
        raise InputError(
            "records cannot be added to an installed package",
            "use --keep in a clone of fiedler, installed with: pip install --editable ./papers",
            code="archive_read_only",
            file=str(path),
        )
    wanted = {cell.key for cell in protocol.cells() if cell.method in protocol.own_methods}
    kept = {
        (*record_key(record), record["backend"]): record
        for record in [*read_archive(path), *plan.record_file.read()]
        if record_key(record) in wanted and "error" not in record
    }
    write_archive(path, kept.values())
    return path


def write_results(plan: Plan, tables: dict[str, list[TableLine]]) -> list[Path]:
    """Write tables as CSV and Markdown, and figures if matplotlib is installed, into the folder of the records."""
    folder, written = plan.record_file.path.parent, []
    folder.mkdir(parents=True, exist_ok=True)
    for key, lines in tables.items():
        title = plan.protocol.experiments[key].title
        texts = {".csv": as_csv(lines), ".md": f"# {title}\n\n{as_markdown(comparison_rows(lines))}\n"}
        for suffix, text in texts.items():
            path = folder / f"{key}{suffix}"
            with atomic_write(path) as draft:
                draft.write_text(text, encoding="utf-8")
            written.append(path)
    if find_spec("matplotlib") is None:
        return written
    return written + write_figures(plan.protocol, plan.experiments, plan.records, folder, plan.backend)

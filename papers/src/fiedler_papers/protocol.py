"""The protocol of a paper as plain data, and the cells to run.

The folder ``papers/<key>/`` contains

- ``protocol.toml``: ``[data.*]``, how rows are loaded and prepared; ``[methods.*]``, a task and a model each;
  ``[experiments.*]``, which methods run on which data over which grid, and which table or figure that makes;
- ``draws.csv``: the classes or the labelled rows of every draw, stored so that they never change;
- ``published.csv``: every number of every table, with the method of the protocol it belongs to;
- ``NOTES.md``, and ``records.jsonl.xz``, the records of the full runs.

A cell is one fit: a method on one data set at one point of the grid for one draw. Its ``digest`` is a fingerprint of
everything the protocol says about it, so that a record made under other settings is never mistaken for it. Names in
``[data.*]`` and ``[methods.*]`` are part of the digest; renaming one invalidates the archived records.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fiedler._validation import check_int, choose, did_you_mean
from fiedler.errors import DataNotFoundError, FileFormatError, InputError

INSTALLED_FOLDER = Path(__file__).parent / "data"  # of the papers' folders, in an installed wheel
CHECKOUT_FOLDER = Path(__file__).parents[2]  # in a working copy: papers/
TEST_PROTOCOL = "smoke"  # a few cells of every kind on bundled data; not a paper

GridPoint = dict[str, Any]  # {"k": 5}, {"rate": 0.02}, {"k": 10, "lam": 4.0}
Draws = dict[tuple[str, str], list[tuple[int, ...]]]  # (data, "k=5") to the classes or labelled rows of every draw


@dataclass(frozen=True)
class Method:
    """A way to cluster or classify, and the published column that it is compared with."""

    key: str
    label: str  # with a † where a setting is chosen by the true labels, as some columns of the papers are
    task: str = "cluster"
    model: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # of the task
    on: dict[str, dict[str, Any]] = field(default_factory=dict)  # parameters of the model that differ on some data
    role: str = "paper"  # 'paper', compared in the paper; 'ours', our defaults; 'peer', in common use today
    published: str | None = None  # a column of published.csv
    seeded: bool = True  # whether the result depends on the seed
    device: bool = False  # whether it accepts arrays of the back end; otherwise it gets NumPy arrays
    package: str | None = None  # that has to be installed for it
    revision: int = 0  # to be raised when a change of its code changes its results, which invalidates older records

    def spec(self, data: str) -> dict[str, Any]:
        """Return task, model and options for one data set."""
        overrides = self.on.get(data, {})
        model = overrides if "use" in overrides else {**self.model, **overrides}
        n_components = self.options.get("reduce", {}).get(data)
        options = {**self.options, "reduce": n_components} if "reduce" in self.options else self.options
        spec = {"task": self.task, "model": model, "options": options}
        return {**spec, "revision": self.revision} if self.revision else spec


@dataclass(frozen=True)
class Experiment:
    """Methods, data, grid and draws behind a table or a figure."""

    key: str
    title: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    grid: dict[str, list[Any]]
    draws: int
    scores: tuple[str, ...]
    table: str | None = None
    figures: tuple[str, ...] = ()
    plot: str = "curves"  # how the figures are drawn, by name of `figures.FIGURES`
    max_draws: dict[str, int] = field(default_factory=dict)  # of methods and data sets that get fewer draws
    compare: tuple[dict[str, Any], ...] = ()  # pairs of ``methods``, and the ``published`` counts of a paired t-test


@dataclass(frozen=True)
class Cell:
    """One fit, and everything that determines its result.

    Examples
    --------
    >>> from fiedler_papers import load_protocol
    >>> cell = load_protocol("smoke").cells(only=["kmeans"])[0]
    >>> cell.paper, cell.data, cell.spec["model"]
    ('smoke', 'digits', {'use': 'EmbedKMeans'})
    """

    paper: str
    data: str
    method: str
    at: GridPoint
    draw: int
    source: dict[str, Any]  # how the rows are loaded and prepared
    spec: dict[str, Any]  # task, model, options
    drawn: tuple[int, ...] | None  # the classes, or the labelled rows, of the draw
    device: bool = False
    package: str | None = None

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the settings, the point of the grid among them."""
        settings = [self.source, self.spec, self.at, self.drawn]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def key(self) -> tuple[str, ...]:
        """The key by which a record is matched."""
        return (self.data, self.method, str(self.draw), self.digest)

    def backend(self, requested: str) -> str:
        """Return the back end it runs on: the requested one if it can, else NumPy."""
        return requested if self.device else "numpy"

    @property
    def group(self) -> tuple[str, str, int]:
        """The key that cells with the same rows share."""
        return (self.data, json.dumps({name: self.at.get(name) for name in ("k", "rate")}), self.draw)


@dataclass(frozen=True)
class Protocol:
    """A paper's experiments.

    Examples
    --------
    >>> from fiedler_papers import load_protocol
    >>> protocol = load_protocol("lapgmm")
    >>> protocol.experiments["usps"].grid
    {'k': [2, 3, 4, 5, 6, 7, 8, 9, 10]}
    """

    key: str
    title: str
    folder: Path
    data: dict[str, dict[str, Any]]
    methods: dict[str, Method]
    experiments: dict[str, Experiment]
    draws: Draws
    own_methods: frozenset[str]  # those that are not borrowed
    borrows: str | None = None  # the paper whose data, methods, draws and records are used as well

    def cells(
        self,
        *,
        table: str | None = None,
        figure: str | None = None,
        draws: int | None = None,
        only: Sequence[str] = (),
    ) -> list[Cell]:
        """Return the cells of one table or figure, or of all, without repetition.

        They are sorted by draw, so that an interrupted run has about as many draws of every cell.

        Parameters
        ----------
        table, figure : str, optional
            A table or figure of the paper.
        draws : int, optional
            The maximum number of draws per cell.
        only : sequence of str
            Data sets, methods and grid values such as ``k=2``; a cell must match one of each kind that is named.
        """
        max_draws = None if draws is None else check_int(draws, "draws")
        experiments = self.select_experiments(table, figure)
        cells = {cell.key: cell for experiment in experiments for cell in self.cells_of(experiment, max_draws)}
        return sorted(_filter_cells(list(cells.values()), only), key=lambda cell: cell.draw)

    def select_experiments(self, table: str | None = None, figure: str | None = None) -> list[Experiment]:
        """Return the experiments behind a table or figure; all of them if neither is given."""
        tables: dict[str, list[Experiment]] = {}
        figures: dict[str, list[Experiment]] = {}
        for experiment in self.experiments.values():
            if experiment.table:
                tables.setdefault(experiment.table, []).append(experiment)
            for name in experiment.figures:
                figures.setdefault(name, []).append(experiment)
        if table is None and figure is None:
            return list(self.experiments.values())
        selected = [] if table is None else choose(tables, table, option="table")
        return selected + ([] if figure is None else choose(figures, figure, option="figure"))

    def cells_of(self, experiment: Experiment, max_draws: int | None = None) -> Iterator[Cell]:
        """Yield the cells of one experiment."""
        for data, name in itertools.product(experiment.data, experiment.methods):
            method = self.methods[name]
            limits = [experiment.max_draws[word] for word in (name, data) if word in experiment.max_draws]
            n_draws = min(experiment.draws, *limits, max_draws or experiment.draws)
            for at in grid_points(experiment.grid):
                stored = self.draws.get((data, _draw_key(at)))
                for draw in range(n_draws):
                    if not method.seeded and draw and (stored is None or stored[draw] in stored[:draw]):
                        continue  # the same rows and no seed: the result would be the same
                    drawn = None if stored is None else stored[draw]
                    yield Cell(
                        self.key, data, name, at, draw, self.data[data], method.spec(data), drawn,
                        device=method.device, package=method.package,
                    )  # fmt: skip


def grid_points(grid: dict[str, list[Any]]) -> Iterator[GridPoint]:
    """Yield every combination of the values of a grid."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values))


def _draw_key(at: GridPoint) -> str:
    """Return the part of a grid point that a draw depends on: ``k=5`` or ``rate=0.02``."""
    return " ".join(f"{name}={at[name]}" for name in ("k", "rate") if name in at)


def _terms(cell: Cell) -> dict[str, str]:
    """Return the terms that select a cell, by kind: its data, its method, and each side of the grid."""
    return {"data": cell.data, "method": cell.method, **{name: f"{name}={value}" for name, value in cell.at.items()}}


def _filter_cells(cells: list[Cell], only: Sequence[str]) -> list[Cell]:
    """Return the cells that match a term of every kind that ``only`` names."""
    known: dict[str, set[str]] = {}
    for cell in cells:
        for kind, term in _terms(cell).items():
            known.setdefault(kind, set()).add(term)
    options = sorted(set().union(*known.values()))
    unknown = sorted(set(only) - set(options)) if options else []
    if unknown:
        raise InputError(
            f"only={unknown[0]!r} is not a data set, method or grid value of these cells"
            f"{did_you_mean(unknown[0], options)}",
            f"choose from {options}",
            code="unknown_option",
            parameter="only",
            value=unknown[0],
            options=options,
        )
    selected = {kind: terms & set(only) for kind, terms in known.items() if terms & set(only)}
    return [cell for cell in cells if all(_terms(cell).get(kind) in terms for kind, terms in selected.items())]


# ------------------------------------------------------------------------------------------------------------- reading


def papers_folder() -> Path:
    """Return the folder that contains the papers' folders."""
    for folder in (INSTALLED_FOLDER, CHECKOUT_FOLDER):
        if any(folder.glob("*/protocol.toml")):
            return folder
    raise DataNotFoundError(
        f"the protocols are neither in {str(INSTALLED_FOLDER)!r} nor in {str(CHECKOUT_FOLDER)!r}",
        "install fiedler-papers again",
        file=str(INSTALLED_FOLDER),
    )


def list_protocols(folder: Path | None = None) -> dict[str, str]:
    """Return the keys of the papers that can be reproduced, with their titles.

    Examples
    --------
    >>> sorted(list_protocols())
    ['lapgmm', 'lcgmm', 'learned_laplacian', 'lpi', 'nle', 'smoke']
    """
    folder = folder or papers_folder()
    files = sorted(folder.glob("*/protocol.toml"))
    return {file.parent.name: _read_toml(file)["title"] for file in files}


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(file, str(error)) from error
    for name in ("title", "methods", "experiments"):
        if name not in table:
            raise _unreadable(file, f"it has no {name!r}")
    return table


def _unreadable(file: Path, reason: str) -> FileFormatError:
    return FileFormatError(
        f"papers/{file.parent.name}/{file.name} cannot be read: {reason}", file=str(file), reason=reason
    )


def load_protocol(key: str, folder: Path | None = None) -> Protocol:
    """Load the protocol of a paper by its key.

    Examples
    --------
    >>> protocol = load_protocol("lapgmm")
    >>> cell = protocol.cells(table="2", draws=1, only=["kmeans", "k=2"])[0]
    >>> cell.data, cell.method, cell.at, cell.drawn
    ('usps', 'kmeans', {'k': 2}, (4, 9))
    """
    folder = folder or papers_folder()
    paper_folder = choose({name: folder / name for name in list_protocols(folder)}, key, option="paper")
    try:
        protocol = _read_protocol(key, paper_folder)
    except (KeyError, TypeError) as error:  # a method or an experiment with a missing or an unknown field
        raise _unreadable(paper_folder / "protocol.toml", str(error)) from error
    _check_consistency(protocol)
    return protocol


def _read_protocol(key: str, folder: Path) -> Protocol:
    table = _read_toml(folder / "protocol.toml")
    borrowed = load_protocol(table["borrows"], folder.parent) if "borrows" in table else None
    return Protocol(
        key=key,
        title=table["title"],
        folder=folder,
        data={**(borrowed.data if borrowed else {}), **table.get("data", {})},
        methods={
            **(borrowed.methods if borrowed else {}),
            **{name: Method(name, **row) for name, row in table["methods"].items()},
        },
        experiments={name: _experiment(name, row) for name, row in table["experiments"].items()},
        draws={**(borrowed.draws if borrowed else {}), **_read_draws(folder / "draws.csv")},
        own_methods=frozenset(table["methods"]),
        borrows=table.get("borrows"),
    )


def _experiment(name: str, row: dict[str, Any]) -> Experiment:
    tuples = {key: tuple(row.get(key, ())) for key in ("data", "methods", "scores", "figures", "compare")}
    return Experiment(name, **{**row, **tuples})


def _read_draws(path: Path) -> Draws:
    draws: Draws = {}
    if not path.exists():
        return draws
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        for row in reader:
            earlier = draws.setdefault((row["data"], row["at"]), [])
            if int(row["draw"]) != len(earlier):
                raise FileFormatError(
                    f"papers/{path.parent.name}/{path.name}: draw {row['draw']} of {row['data']}, {row['at']} is out "
                    "of order",
                    "number the draws 0, 1, 2, ...",
                    file=str(path),
                    line=reader.line_num,
                )
            earlier.append(tuple(int(value) for value in row["chosen"].split()))
    return draws


def _check_consistency(protocol: Protocol) -> None:
    """Raise an error if an experiment names an unknown method or data set, or needs more draws than are stored."""
    file = protocol.folder / "protocol.toml"
    for experiment in protocol.experiments.values():
        where = f"papers/{protocol.key}/protocol.toml, experiment {experiment.key!r}"
        for name in experiment.methods:
            choose(protocol.methods, name, option=f"{where}: method")
        for name in (name for row in experiment.compare for name in row["methods"]):
            choose(dict.fromkeys(experiment.methods), name, option=f"{where}: compare")
        for data in experiment.data:
            choose(protocol.data, data, option=f"{where}: data")
            for at in grid_points(experiment.grid):
                draw_key = _draw_key(at)
                n_stored = len(protocol.draws.get((data, draw_key), ()))
                if draw_key and n_stored < experiment.draws:
                    raise FileFormatError(
                        f"{where}: draws.csv contains {n_stored} of {experiment.draws} draws for {data}, {draw_key}",
                        file=str(file),
                        n_stored=n_stored,
                        n_draws=experiment.draws,
                    )

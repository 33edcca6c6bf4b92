"""A paper's folder as plain data: its protocol, the draws it stores, the figures it published; and the cells to run.

``papers/<key>/`` holds

- ``protocol.toml``: ``[data.*]``, how rows are loaded and prepared; ``[methods.*]``, a task and a model each;
  ``[experiments.*]``, which methods run on which data over which grid, and which table or figure that makes;
- ``draws.csv``: the classes or the labelled rows of every draw, stored so that nobody draws them again;
- ``published.csv``: every number of every table, beside the method of the protocol it belongs to;
- ``NOTES.md``, and ``records.jsonl.xz``, the records of the full runs.

A cell is one fit: a method on one data set at one place of the grid for one draw. Its ``digest`` is a fingerprint of
everything the protocol says about it, so that a record made under other settings is never taken for it.
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

from fiedler._validation import check_int, choose

PACKAGED = Path(__file__).parent / "data"  # the papers' folders in a wheel
CHECKOUT = Path(__file__).parents[2]  # and in a working copy, where this file is papers/src/fiedler_papers/protocol.py

At = dict[str, Any]  # a place of the grid: {"k": 5}, {"rate": 0.02}, {"k": 10, "lam": 4.0}


@dataclass(frozen=True)
class Method:
    """A way to cluster or classify, and which published column it is laid beside."""

    key: str
    label: str  # with a † where a setting is chosen by the true labels, as some columns of the papers are
    task: str = "cluster"
    model: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # what the task takes beside the model
    on: dict[str, dict[str, Any]] = field(default_factory=dict)  # other parameters of the model on some data
    role: str = "paper"  # 'paper', what the paper compares; 'ours', our defaults; 'peer', what people use today
    published: str | None = None  # a column of published.csv
    seeded: bool = True  # whether draws of the same rows differ
    device: bool = False  # whether it takes rows on a device; host rows otherwise, whatever the back end
    package: str | None = None  # what has to be installed for it
    revision: int = 0  # raised by hand when its code changes what it finds, so that older records no longer count

    def spec(self, data: str) -> dict[str, Any]:
        """What is run on ``data``."""
        other = self.on.get(data, {})
        model = other if "use" in other else {**self.model, **other}
        reduce = self.options.get("reduce", {}).get(data)
        options = {**self.options, "reduce": reduce} if "reduce" in self.options else self.options
        spec = {"task": self.task, "model": model, "options": options}
        return {**spec, "revision": self.revision} if self.revision else spec


@dataclass(frozen=True)
class Experiment:
    """Methods by data by grid by draws: what a table or a figure is made of."""

    key: str
    title: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    grid: dict[str, list[Any]]
    draws: int
    scores: tuple[str, ...]
    table: str | None = None
    figures: tuple[str, ...] = ()
    draw: str = "curves"  # how the figures are drawn
    fewer: dict[str, int] = field(default_factory=dict)  # draws of the methods and of the data that get fewer


@dataclass(frozen=True)
class Cell:
    """One fit, and all that decides its result.

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
    at: At
    draw: int
    source: dict[str, Any]  # how the rows are loaded and prepared
    spec: dict[str, Any]  # task, model, options
    chosen: tuple[int, ...] | None  # the classes, or the labelled rows, of the draw
    device: bool = False
    package: str | None = None

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the settings."""
        settled = [self.source, self.spec, self.at, self.chosen]
        return hashlib.sha256(json.dumps(settled, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def key(self) -> tuple[str, ...]:
        """What a record is recognised by."""
        return (self.data, self.method, json.dumps(self.at, sort_keys=True), str(self.draw), self.digest)

    def backend(self, wanted: str) -> str:
        """The back end it runs on: the wanted one, if it can."""
        return wanted if self.device else "numpy"

    @property
    def group(self) -> tuple[str, str, int]:
        """Cells that share their rows."""
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
    draws: dict[tuple[str, str], list[tuple[int, ...]]]
    own: frozenset[str]  # methods that are not borrowed
    borrows: str | None = None  # the paper whose data, methods, draws and records are used as well

    def cells(
        self,
        *,
        table: str | None = None,
        figure: str | None = None,
        draws: int | None = None,
        only: Sequence[str] = (),
    ) -> list[Cell]:
        """The cells of one table or figure, or of all, each once; draw by draw, so that a cut run is an even one.

        Parameters
        ----------
        table, figure : str, optional
            A table or figure of the paper.
        draws : int, optional
            At most so many draws of each.
        only : sequence of str
            Data sets, methods and places of the grid such as ``k=2``: of each kind that is named, a cell must hold one.
        """
        wanted = None if draws is None else check_int(draws, "draws")
        found = {cell.key: cell for one in self.chosen(table, figure) for cell in self.cells_of(one, wanted)}
        return sorted(_chosen_by(only, list(found.values())), key=lambda cell: cell.draw)

    def chosen(self, table: str | None = None, figure: str | None = None) -> list[Experiment]:
        """The experiments behind a table or figure; all of them if neither is named."""
        tables: dict[str, list[Experiment]] = {}
        figures: dict[str, list[Experiment]] = {}
        for one in self.experiments.values():
            for names, named in (([one.table] if one.table else [], tables), (one.figures, figures)):
                for name in names:
                    named.setdefault(name, []).append(one)
        if table is None and figure is None:
            return list(self.experiments.values())
        found = [] if table is None else choose(tables, table, option="table")
        return found + ([] if figure is None else choose(figures, figure, option="figure"))

    def cells_of(self, one: Experiment, draws: int | None = None) -> Iterator[Cell]:
        """The cells of one experiment."""
        for data, name in itertools.product(one.data, one.methods):
            method = self.methods[name]
            most = min(one.draws, *(one.fewer.get(word, one.draws) for word in (name, data)), draws or one.draws)
            for at in places(one.grid):
                stored = self.draws.get((data, _place_of_draw(at)))
                for draw in range(most):
                    if not method.seeded and draw and (stored is None or stored[draw] in stored[:draw]):
                        continue  # the same rows, and nothing else to differ by
                    chosen = None if stored is None else stored[draw]
                    yield Cell(
                        self.key, data, name, at, draw, self.data[data], method.spec(data), chosen,
                        device=method.device, package=method.package,
                    )  # fmt: skip


def places(grid: dict[str, list[Any]]) -> Iterator[At]:
    """Every combination of the grid's values."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values))


def _place_of_draw(at: At) -> str:
    """``k=5`` or ``rate=0.02``: what a draw depends on."""
    return " ".join(f"{name}={at[name]}" for name in ("k", "rate") if name in at)


def _words(cell: Cell) -> dict[str, set[str]]:
    """What a cell can be called by: data, method, and each side of the grid."""
    return {"data": {cell.data}, "method": {cell.method}} | {
        name: {f"{name}={value}"} for name, value in cell.at.items()
    }


def _chosen_by(only: Sequence[str], cells: list[Cell]) -> list[Cell]:
    """The cells that hold a word of every kind that ``only`` names."""
    known: dict[str, set[str]] = {}
    for cell in cells:
        for kind, words in _words(cell).items():
            known.setdefault(kind, set()).update(words)
    strange = set(only) - set().union(*known.values()) if known else set()
    if strange:
        everything = sorted(set().union(*known.values()))
        raise ValueError(f"only={sorted(strange)[0]!r} is no data set, method or place here; there are {everything}")
    wanted = {kind: words & set(only) for kind, words in known.items() if words & set(only)}
    return [cell for cell in cells if all(_words(cell).get(kind, set()) & wanted[kind] for kind in wanted)]


# ------------------------------------------------------------------------------------------------------------- reading


def papers_folder() -> Path:
    """Where the papers' folders lie."""
    for folder in (PACKAGED, CHECKOUT):
        if any(folder.glob("*/protocol.toml")):
            return folder
    raise FileNotFoundError("the folder papers/ is neither in the package nor beside it; work from a clone of fiedler")


def list_protocols(folder: Path | None = None) -> dict[str, str]:
    """The papers that can be reproduced, each with its title.

    Examples
    --------
    >>> sorted(list_protocols())
    ['lapgmm', 'lcgmm', 'learned_laplacian', 'lpi', 'nle', 'smoke']
    """
    folder = folder or papers_folder()
    files = sorted(folder.glob("*/protocol.toml"))
    return {file.parent.name: _toml(file)["title"] for file in files}


def _toml(file: Path) -> dict[str, Any]:
    """A protocol's text, or one sentence on what is wrong with it."""
    try:
        text = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"papers/{file.parent.name}/protocol.toml cannot be read: {error}") from error
    for name in ("title", "methods", "experiments"):
        if name not in text:
            raise ValueError(f"papers/{file.parent.name}/protocol.toml cannot be read: it has no {name}")
    return text


def load_protocol(key: str, folder: Path | None = None) -> Protocol:
    """The protocol of a paper, by its key.

    Examples
    --------
    >>> protocol = load_protocol("lapgmm")
    >>> cell = protocol.cells(table="2", draws=1, only=["kmeans", "k=2"])[0]
    >>> cell.data, cell.method, cell.at, cell.chosen
    ('usps', 'kmeans', {'k': 2}, (4, 9))
    """
    folder = folder or papers_folder()
    known = {name: folder / name for name in list_protocols(folder)}
    home = choose(known, key, option="paper")
    try:
        protocol = _read(key, home)
    except (KeyError, TypeError) as error:  # a method or an experiment without a field, or with a strange one
        raise ValueError(f"papers/{key}/protocol.toml cannot be read: {error}") from error
    _check(protocol)
    return protocol


def _read(key: str, home: Path) -> Protocol:
    """A protocol as its files say it."""
    text = _toml(home / "protocol.toml")
    borrowed = load_protocol(text["borrows"], home.parent) if "borrows" in text else None
    return Protocol(
        key=key,
        title=text["title"],
        folder=home,
        data={**(borrowed.data if borrowed else {}), **text.get("data", {})},
        methods={
            **(borrowed.methods if borrowed else {}),
            **{name: Method(name, **row) for name, row in text["methods"].items()},
        },
        experiments={name: _experiment(name, row) for name, row in text["experiments"].items()},
        draws={**(borrowed.draws if borrowed else {}), **_read_draws(home / "draws.csv")},
        own=frozenset(text["methods"]),
        borrows=text.get("borrows"),
    )


def _experiment(name: str, row: dict[str, Any]) -> Experiment:
    lists = {key: tuple(row.get(key, ())) for key in ("data", "methods", "scores", "figures")}
    return Experiment(name, **{**row, **lists})


def _read_draws(path: Path) -> dict[tuple[str, str], list[tuple[int, ...]]]:
    found: dict[tuple[str, str], list[tuple[int, ...]]] = {}
    if not path.exists():
        return found
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            drawn = found.setdefault((row["data"], row["at"]), [])
            if int(row["draw"]) != len(drawn):
                raise ValueError(f"{path.name}: draw {row['draw']} of {row['data']}, {row['at']} is out of order")
            drawn.append(tuple(int(value) for value in row["chosen"].split()))
    return found


def _check(protocol: Protocol) -> None:
    """One sentence for a protocol that contradicts itself."""
    for one in protocol.experiments.values():
        where = f"papers/{protocol.key}/protocol.toml, experiment {one.key!r}"
        for name in one.methods:
            choose(protocol.methods, name, option=f"{where}: method")
        for data in one.data:
            choose(protocol.data, data, option=f"{where}: data")
            for at in places(one.grid):
                stored = protocol.draws.get((data, _place_of_draw(at)))
                place = _place_of_draw(at)
                if place and len(stored or ()) < one.draws:
                    held = len(stored or ())
                    raise ValueError(f"{where}: draws.csv holds {held} of {one.draws} draws for {data}, {place}")

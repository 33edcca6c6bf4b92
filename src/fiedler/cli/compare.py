"""``fiedler compare``: several methods on the same rows, side by side."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from sklearn.metrics import silhouette_score

from .._files import atomic_write
from ..graph.recipes import self_tuned
from ..io import Input, read_input
from ..metrics import score_table
from ..report.jsonable import jsonable
from .clustering import Clusters, Drop, Id, Labels, Scale, Seed, Size, Source, Text
from .fitting import count, fit, scores
from .methods import METHODS, Prepared, check_k, pick, prepare, read_k
from .output import Json, Output, Quiet, check_file, table
from .wording import EXPECTED, sentence

USUAL = ("auto", "lapgmm", "spectral", "lpi", "gmm", "kmeans")
SAMPLE = 5000  # rows that the silhouette is measured on
NEIGHBOURS = 9  # of the graph that cuts are measured on
SHORT = {"clusters": "K", "modularity": "mod.", "silhouette": "silh.", "seconds": "s", "peak_mb": "MB"}


def compare(
    source: Source,
    k: Clusters,
    methods: Annotated[str, typer.Option(help=f"Of {', '.join(METHODS)}, with commas.")] = ",".join(USUAL),
    labels: Labels = None,
    id: Id = None,
    text: Text = None,
    drop: Drop = None,
    size: Size = None,
    scale: Scale = "auto",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Also as a CSV file.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Several methods side by side: scores without labels, with them where they are known, seconds and memory.

    The normalised cut (less is better) and the modularity (more is better) are measured on one graph for all, the
    silhouette on the rows. No one of them decides alone: each favours the method that optimises it.
    """
    voice = Output(quiet, json)
    wanted = [name.strip() for name in methods.split(",") if name.strip()]
    if not wanted:
        raise ValueError(f"--methods names none; there are {', '.join(METHODS)}")
    for name in wanted:
        pick(METHODS, name, "--methods")
    n_clusters = read_k(k)
    check_file(out)
    with voice.at_work(f"reading {source}"):
        found = read_input(source, labels=labels, id=id, text=text, drop=drop or (), size=size)
        check_k(n_clusters, found)
        ready = prepare(found, scale)
    deaf = [name for name in wanted if found.steers and "labels" not in METHODS[name].takes]
    if deaf:
        voice.note(f"{', '.join(deaf)} cannot be told labels and {'are' if deaf[1:] else 'is'} fitted without them")
    evidence, lines = None, []
    if n_clusters == "auto":
        with voice.at_work("counting clusters") as listener:
            n_clusters, evidence = count(ready, seed=seed, listener=listener)
    with voice.at_work("measuring the graph"):
        measure = _Measure(ready.rows, seed)
    for place, name in enumerate(wanted, start=1):
        with voice.at_work(f"{name} ({place} of {len(wanted)})") as listener:
            lines.append(_line(found, ready, name, n_clusters, seed, measure, listener))
    if all("failed" in line for line in lines):
        raise ValueError(f"no method could be fitted; {lines[0]['method']}: {lines[0]['failed']}")
    if out is not None:
        _write(out, lines)
    voice.result(
        {"rows": found.n_rows, "methods": lines, "evidence": jsonable(evidence)},
        *([] if evidence is None else [f"{evidence}\n"]),
        _as_table(f"{found.n_rows} rows", lines),
        *(f"{line['method']} failed: {line['failed']}" for line in lines if "failed" in line),
        *([] if out is None else [f"written to {out}"]),
    )


class _Measure:
    """Internal scores of labels, on one graph and the same rows for every method."""

    def __init__(self, rows: Any, seed: int) -> None:
        self.rows, self.seed = rows, seed
        self.graph = self_tuned(min(NEIGHBOURS, rows.shape[0] - 1)).build(rows)

    def __call__(self, labels: np.ndarray) -> dict[str, float]:
        found = score_table(None, labels, self.graph)
        if 1 < len(np.unique(labels)) < len(labels):
            size = min(SAMPLE, len(labels))
            found["silhouette"] = float(silhouette_score(self.rows, labels, sample_size=size, random_state=self.seed))
        return found


def _line(
    found: Input, ready: Prepared, name: str, k: Any, seed: int, measure: _Measure, listener: Any
) -> dict[str, Any]:
    """One method's row; one that cannot be fitted says why and the others go on."""
    told = found if "labels" in METHODS[name].takes else found._replace(labels=None)
    try:
        done = fit(told, ready, name, k, seed=seed, listener=listener)
    except EXPECTED as error:
        return {"method": name, "failed": sentence(error)}
    line = {
        "method": name,
        "clusters": len(np.unique(done.labels)),
        **measure(done.labels),
        **scores(found, done.labels),
    }
    return line | {"seconds": round(done.seconds, 3), "peak_mb": done.peak_mb}


def _columns(lines: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for line in lines for key in line))


def _as_table(title: str, lines: list[dict[str, Any]]) -> Table:
    columns = [name for name in _columns(lines) if name != "failed"]
    rows = [[_shown(line.get(column)) for column in columns] for line in lines]
    return table(title, *(SHORT.get(name, name) for name in columns), rows=rows)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{round(value, 3) + 0:.3f}" if isinstance(value, float) else str(value)  # + 0: no -0.000


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _columns(lines))
        writer.writeheader()
        writer.writerows(lines)

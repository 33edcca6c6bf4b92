"""``fiedler cluster``, ``fiedler predict`` and ``fiedler report``: rows to labels, a model and a page."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .._validation import choose
from ..core.backend import to_numpy
from ..inputs import Input, read_input
from ..inputs.tables import TABLES
from ..models import load, read_notes, save
from ..report import read_summary, summarize, write_report, write_summary
from .fitting import Fit, fit, labels_table, scores, steers, write_labels
from .methods import METHODS, SCALES, Prepared, check_k, prepare
from .voice import Debug, Json, Quiet, Voice, check_file, table

LABELS, MODEL, SUMMARY, PAGE = "labels.csv", "model.npz", "summary.json", "report.html"
LONG_TABLE = 30  # clusters that are listed in the terminal

Source = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="A CSV, Parquet, NPY or NPZ file, JSON lines, a folder of images or of .txt files, or a data set's name.",
    ),
]
Clusters = Annotated[str, typer.Option("-k", "--clusters", metavar="K", help="How many clusters, or auto.")]
Labels = Annotated[
    str | None,
    typer.Option(metavar="COL", help="A column of known classes. With gaps it steers; full, it is only compared with."),
]
Id = Annotated[str | None, typer.Option("--id", metavar="COL", help="A column of names for the rows.")]
Text = Annotated[str | None, typer.Option(metavar="COL", help="A column of texts: these are clustered.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="COL", help="A column to leave out; may be repeated.")]
Size = Annotated[int | None, typer.Option(metavar="N", min=2, help="Bring images to N pixels a side.")]
Scale = Annotated[str, typer.Option(help=f"auto, {', '.join(SCALES)}. auto: standard for tables, unit for images.")]
Seed = Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")]


def cluster(
    source: Source,
    k: Clusters = "auto",
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "auto",
    labels: Labels = None,
    pairs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A CSV of first,second,kind: row numbers, must-link or cannot-link."),
    ] = None,
    id: Id = None,
    text: Text = None,
    drop: Drop = None,
    size: Size = None,
    scale: Scale = "auto",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: out/ and the input's name.")] = None,
    quiet: Quiet = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Cluster rows: labels.csv, model.npz and report.html."""
    voice = Voice(quiet, json)
    folder = out or Path("out") / Path(source).stem
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is a file, where a folder for the results should be")
    choose(METHODS, method, option="method")
    with voice.at_work(f"reading {source}"):
        found = read_input(source, labels=labels, id=id, text=text, drop=drop or (), size=size)
        n_clusters = check_k(k, found.n_rows)
        ready = prepare(found, scale)
    with voice.at_work(f"clustering {found.n_rows} rows") as listener:
        done = fit(found, ready, method, n_clusters, seed=seed, pairs=pairs, listener=listener)
    with voice.at_work("writing the report"):
        settings = {"method": method, "scale": ready.scale, "seed": seed, "steered by": _steering(found, pairs)}
        files = _write(folder, found, done, ready, title=Path(source).name, settings=settings)
    plain = {
        "rows": found.n_rows,
        "method": method,
        "n_clusters": done.n_clusters,
        "clusters": _sizes(done),
        "scores": scores(found, done.labels),
        "seconds": round(done.seconds, 3),
        "files": {path.name: str(path) for path in files},
    }
    voice.result(plain, *_shown(plain, done))


def _steering(found: Input, pairs: Path | None) -> str:
    parts = ["some labels"] * steers(found) + ["pairs"] * (pairs is not None)
    return " and ".join(parts) or "nothing"


def _write(folder: Path, found: Input, done: Fit, ready: Prepared, **about: Any) -> list[Path]:
    """All files, made beside their place and then moved into it, so that a failure leaves none."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".fiedler-", dir=folder))
    try:
        write_labels(draft / LABELS, found.names, done.labels, done.memberships)
        save(done.model, draft / MODEL, notes=_notes(found))
        summary = _summary(found, done, ready, **about)
        write_summary(summary, draft / SUMMARY)
        write_report(summary, draft / PAGE)
        return [(draft / name).replace(folder / name) for name in (LABELS, MODEL, SUMMARY, PAGE)]
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _notes(found: Input) -> dict[str, Any]:
    """What `predict` has to know of the input."""
    return {"kind": found.kind, "columns": found.columns, "pixels": found.pixels and list(found.pixels)}


def _summary(found: Input, done: Fit, ready: Prepared, **about: Any) -> dict[str, Any]:
    return summarize(
        done.clusterer,
        ready.rows,
        ids=found.names,
        texts=found.X if found.kind == "texts" else None,
        images=None if found.pixels is None else np.asarray(found.X).reshape(-1, *found.pixels),
        original=found.X if found.kind == "table" else None,
        feature_names=done.model[0].get_feature_names_out() if found.kind == "texts" else found.columns,
        truth=None if found.labels is None or steers(found) else found.labels,
        seconds=done.seconds,
        command=shlex.join(["fiedler", *sys.argv[1:]]),
        **about,
    )


def _sizes(done: Fit) -> list[dict[str, Any]]:
    """Each cluster's size and mean confidence."""
    found = []
    for label in range(done.n_clusters):
        rows = done.labels == label
        sure = {} if done.confidence is None or not rows.any() else {"confidence": float(done.confidence[rows].mean())}
        found.append({"label": label, "size": int(rows.sum()), **sure})
    return found


def _shown(plain: dict[str, Any], done: Fit) -> list[Any]:
    """The same for people."""
    parts: list[Any] = [] if done.evidence is None else [f"{done.evidence}\n"]
    rows = [
        (
            one["label"],
            one["size"],
            f"{one['size'] / plain['rows']:.1%}",
            f"{one['confidence']:.2f}" if "confidence" in one else "-",
        )
        for one in plain["clusters"]
    ]
    head = f"{plain['rows']} rows in {plain['n_clusters']} clusters, by {plain['method']}, in {done.seconds:.1f} s"
    parts.append(table(head, "cluster", "rows", "share", "confidence", rows=rows[:LONG_TABLE]))
    if len(rows) > LONG_TABLE:
        parts.append(f"... and {len(rows) - LONG_TABLE} more, in {LABELS}")
    if plain["scores"]:
        parts.append(
            "beside the known labels: " + ", ".join(f"{name} {value:.3f}" for name, value in plain["scores"].items())
        )
    return [*parts, "written: " + ", ".join(plain["files"].values())]


# ------------------------------------------------------------------------------------------------------------- predict


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model.npz that fiedler cluster wrote, or its folder.")
    ],
    source: Source,
    id: Id = None,
    text: Text = None,
    drop: Drop = None,
    size: Size = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="A CSV file; default: standard output.")] = None,
    quiet: Quiet = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The clusters of new rows: id, label, confidence and memberships as CSV."""
    voice = Voice(quiet, json)
    path = model / MODEL if model.is_dir() else model
    notes, fitted = read_notes(path), load(path)
    if not hasattr(fitted, "predict"):
        raise ValueError(f"{str(path)!r} holds a {type(fitted).__name__}, which cannot predict clusters")
    check_file(out)
    with voice.at_work(f"reading {source}"):
        found = read_input(source, id=id, text=text, drop=drop or (), size=size, features=_columns(source, notes))
    _check_as_fitted(found, notes)
    with voice.at_work(f"predicting {found.n_rows} rows"):
        shares = to_numpy(fitted.predict_proba(found.X)) if hasattr(fitted, "predict_proba") else None
        labels = to_numpy(fitted.predict(found.X)) if shares is None else shares.argmax(axis=1)
    if out is not None:
        write_labels(out, found.names, labels, shares)
    if json:
        sure = {} if shares is None else {"confidence": shares.max(axis=1).tolist()}
        voice.result({"ids": found.names, "labels": labels.tolist(), **sure})
    elif out is None:
        labels_table(sys.stdout, found.names, labels, shares)
    else:
        voice.result({}, f"{found.n_rows} rows; written: {out}")


def _columns(source: str, notes: dict[str, Any]) -> list[str]:
    """The columns that the model was fitted to, if there are columns: whatever else a table holds does not matter."""
    is_table = Path(source).suffix.lower() in TABLES
    return list(notes.get("columns") or ()) if is_table else []


def _check_as_fitted(found: Input, notes: dict[str, Any]) -> None:
    """Rows of another kind or shape than the model was fitted to are refused."""
    if found.kind != notes.get("kind", found.kind):
        raise ValueError(f"the model was fitted to {notes['kind']}, and these rows are {found.kind}")
    if found.pixels is not None and list(found.pixels) != notes.get("pixels"):
        wanted, got = ("x".join(map(str, shape)) for shape in (notes.get("pixels") or (), found.pixels))
        raise ValueError(
            f"the model was fitted to images of {wanted}, and these are {got}: bring them to the same size and colours"
        )


# -------------------------------------------------------------------------------------------------------------- report


def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder that fiedler cluster wrote.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: report.html in that folder.")] = None,
    quiet: Quiet = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Make the page again from a folder of results."""
    folder = results if results.is_dir() else results.parent
    target = out or folder / PAGE
    write_report(read_summary(folder / SUMMARY if results.is_dir() else results), target)
    Voice(quiet, json).result({"files": {target.name: str(target)}}, f"written: {target}")

"""``fiedler cluster``, ``fiedler predict`` and ``fiedler report``: rows to labels, a model and a page."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from .._validation import first_few
from ..clustering.explain import UNCERTAIN_BELOW
from ..core.backend import to_numpy
from ..io import Input, read_input
from ..io.tables import TABLES
from ..persistence import load, read_notes, save
from ..report import read_summary, summarize, write_report, write_summary
from .fitting import Fit, fit, labels_table, scores, write_labels
from .methods import METHODS, SCALES, Prepared, check_k, named_by_id, pick, prepare, read_k
from .output import Json, Output, Quiet, check_file, table
from .results import FILES, LABELS, MODEL, PAGE, SUMMARY, atomic_folder, check_folder, relative_source, source_name

KINDS = {"table": "a table", "array": "an array", "images": "images", "texts": "texts"}
LONG_TABLE = 30  # clusters that are listed in the terminal
TOLD = ("label", "name", "size", "share", "confidence")  # of a cluster

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
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of everything that is drawn.")]


def cluster(
    source: Source,
    k: Clusters = "auto",
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "auto",
    labels: Labels = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A CSV of first,second,kind: ids or row numbers; must-link or cannot-link.",
        ),
    ] = None,
    id: Id = None,
    text: Text = None,
    drop: Drop = None,
    size: Size = None,
    scale: Scale = "auto",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: out/ and the input's name.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the results of another input.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Cluster rows: labels.csv, model.npz, summary.json and report.html."""
    voice, n_clusters = Output(quiet, json), read_k(k)
    pick(METHODS, method, "--method")
    folder = out or Path("out") / source_name(source)
    check_folder(folder, source, force=force)
    with voice.at_work(f"reading {source}"):
        found = read_input(source, labels=labels, id=id, text=text, drop=drop or (), size=size)
        check_k(n_clusters, found)
        ready = prepare(found, scale)
    with voice.at_work(f"clustering {found.n_rows} rows") as listener:
        done = fit(found, ready, method, n_clusters, seed=seed, pairs=pairs, listener=listener)
    if found.steers:
        voice.note(_how_labels_steer(found))
    with voice.at_work("writing the report"):
        settings = {"method": method, "scale": ready.scale, "seed": seed, "steered by": _steering(found, pairs)}
        notes = _notes(found, done, source=relative_source(folder, source), id=id, text=text, size=size)
        summary = _summary(found, done, ready, title=Path(source).resolve().name, settings=settings)
        _write(folder, found, done, notes, summary)
    plain = {
        "rows": found.n_rows,
        "method": method,
        "n_clusters": done.n_clusters,
        "clusters": [{name: one[name] for name in TOLD if name in one} for one in summary["clusters"]],
        "evidence": summary["evidence"],
        "scores": scores(found, done.labels),
        "seconds": round(done.seconds, 3),
        "files": {name: str(folder / name) for name in FILES},
    }
    voice.result(plain, *_shown(plain, done, folder))


def _how_labels_steer(found: Input) -> str:
    """Labels with gaps change what is found, and give clusters their names."""
    codes, classes = found.codes()
    named = first_few([f"{place} is {name!r}" for place, name in enumerate(classes)])
    return f"the labels of {(codes >= 0).sum()} of {found.n_rows} rows steer the clusters: {named}"


def _steering(found: Input, pairs: Path | None) -> str:
    parts = ["some labels"] * found.steers + ["pairs"] * (pairs is not None)
    return " and ".join(parts) or "nothing"


def _write(folder: Path, found: Input, done: Fit, notes: dict[str, Any], summary: dict[str, Any]) -> None:
    """All files or none."""
    with atomic_folder(folder) as draft:
        write_labels(draft / LABELS, found.names, done.labels, done.memberships, done.names)
        save(done.model, draft / MODEL, notes=notes)
        write_summary(summary, draft / SUMMARY)
        write_report(summary, draft / PAGE)


def _notes(found: Input, done: Fit, **more: Any) -> dict[str, Any]:
    """What `predict` has to know of the input, and the next `cluster` of whose results these are."""
    pixels = found.pixels and list(found.pixels)
    return {"kind": found.kind, "columns": found.columns, "pixels": pixels, "names": done.names, **more}


def _summary(found: Input, done: Fit, ready: Prepared, **about: Any) -> dict[str, Any]:
    return summarize(
        done.clusterer,
        ready.rows,
        ids=found.names,
        texts=found.X if found.kind == "texts" else None,
        images=None if found.pixels is None else np.asarray(found.X).reshape(-1, *found.pixels),
        original=found.X if found.kind == "table" else None,
        feature_names=done.model[0].get_feature_names_out() if found.kind == "texts" else found.columns,
        truth=None if found.steers else found.labels,
        evidence=done.evidence,
        names=done.names,
        seconds=done.seconds,
        command=shlex.join(["fiedler", *sys.argv[1:]]),
        **about,
    )


def _shown(plain: dict[str, Any], done: Fit, folder: Path) -> list[Any]:
    """The same for people."""
    parts: list[Any] = [] if done.evidence is None else [f"{done.evidence}\n"]
    filled = [one for one in plain["clusters"] if one["size"]]
    clusters = "1 cluster" if len(filled) == 1 else f"{len(filled)} clusters"
    head = f"{plain['rows']} rows in {clusters}, by {plain['method']}, in {done.seconds:.1f} s"
    columns = ("cluster", "rows", "share", *(["confidence"] if done.confidence is not None else []))
    parts.append(table(head, *columns, rows=[_cells(one) for one in filled[:LONG_TABLE]]))
    if len(filled) > LONG_TABLE:
        parts.append(f"... and {len(filled) - LONG_TABLE} more, in {LABELS}")
    if done.confidence is not None and (doubtful := int((done.confidence <= UNCERTAIN_BELOW).sum())):
        parts.append(f"rows in doubt, of confidence {UNCERTAIN_BELOW} or less: {doubtful}")
    if plain["scores"]:
        named = ", ".join(f"{name} {value:.3f}" for name, value in plain["scores"].items())
        parts.append(f"beside the known labels: {named}")
    return [*parts, f"written to {folder}: {', '.join(FILES)}"]


def _cells(one: dict[str, Any]) -> tuple[Any, ...]:
    sure = () if one["confidence"] is None else (f"{one['confidence']:.2f}",)
    label = one["label"] if one.get("name") is None else f"{one['label']} {one['name']}"
    return (label, one["size"], f"{one['share']:.1%}", *sure)


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
) -> None:
    """The clusters of new rows: id, label, confidence and memberships as CSV."""
    voice = Output(quiet, json)
    path = model / MODEL if model.is_dir() else model
    notes, fitted = read_notes(path), load(path)
    if not hasattr(fitted, "predict"):
        raise ValueError(f"{str(path)!r} holds a {type(fitted).__name__}, which cannot predict; give a clustering")
    check_file(out)
    with voice.at_work(f"reading {source}"):
        options = _as_noted(source, notes, text=text, size=size)
        if needed := set(drop or ()) & set(options.get("features", ())):
            raise ValueError(f"the model needs the column {min(needed)!r}; do not leave it out")
        found = read_input(source, id=id, drop=drop or (), **options)
    _check_as_fitted(found, fitted, notes)
    with voice.at_work(f"predicting {found.n_rows} rows"), _wordless(found, fitted):
        shares = to_numpy(fitted.predict_proba(found.X)) if hasattr(fitted, "predict_proba") else None
        labels = to_numpy(fitted.predict(found.X)) if shares is None else shares.argmax(axis=1)
    names = notes.get("names")
    if out is not None:
        write_labels(out, found.names, labels, shares, names)
    if json:
        sure = {} if shares is None else {"confidence": shares.max(axis=1).tolist()}
        voice.result({"ids": found.names, "labels": labels.tolist(), **sure})
    elif out is None:
        labels_table(sys.stdout, found.names, labels, shares, names)
    else:
        voice.result({}, f"{found.n_rows} rows; written to {out}")


def _as_noted(source: str, notes: dict[str, Any], *, text: str | None, size: int | None) -> dict[str, Any]:
    """What the input is read for, as the model's was: the column of texts, the features, the size of images."""
    if Path(source).suffix.lower() in TABLES:
        text = text or notes.get("text")
        return {"text": text, "features": [] if text else notes.get("columns") or [], "size": size}
    return {"text": text, "size": size or (notes.get("size") if Path(source).is_dir() else None)}


def _wordless(found: Input, fitted: Any) -> Any:
    """Texts without a known word are named."""
    if found.kind != "texts" or not isinstance(fitted, Pipeline):
        return nullcontext()
    return named_by_id(found, lambda: np.flatnonzero(np.diff(fitted[0].transform(found.X).indptr) == 0))


def _check_as_fitted(found: Input, fitted: Any, notes: dict[str, Any]) -> None:
    """Rows of another kind or shape than the model was fitted to are refused."""
    if found.kind != notes.get("kind", found.kind):
        raise ValueError(f"the model was fitted to {KINDS[notes['kind']]}, and these are {KINDS[found.kind]}")
    if found.pixels is not None and list(found.pixels) != notes.get("pixels"):
        wanted, got = ("x".join(map(str, shape)) for shape in (notes.get("pixels") or (), found.pixels))
        raise ValueError(
            f"the model was fitted to images of {wanted}, and these are {got}: bring them to the same size and colours"
        )
    width = getattr(fitted, "n_features_in_", None)
    if found.kind != "texts" and width not in (None, found.X.shape[1]):
        raise ValueError(
            f"the model was fitted to rows of {width} numbers, and these have {found.X.shape[1]}; give the same columns"
        )


# -------------------------------------------------------------------------------------------------------------- report


def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder that fiedler cluster wrote.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: report.html in that folder.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Make the page again from a folder of results."""
    voice = Output(quiet, json)
    folder = results if results.is_dir() else results.parent
    target = out or folder / PAGE
    check_file(target)
    with voice.at_work("writing the report"):
        write_report(read_summary(folder / SUMMARY if results.is_dir() else results), target)
    voice.result({"files": {target.name: str(target)}}, f"written to {target}")

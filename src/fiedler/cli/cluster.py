"""``fiedler cluster``: cluster rows and write labels, a model, a summary and a report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from .._registry import methods
from .._validation import choose, first_few
from ..clustering import FitCost
from ..clustering.choice_report import UNCERTAIN_BELOW
from ..clustering.comparison import EFFORTS
from ..clustering.cost_records import format_bytes
from ..clustering.explanation import describe_columns
from ..core.progress import format_seconds
from ..io import Input, read_input
from ..persistence import save
from ..report import summarize, write_report, write_summary
from ..table.columns import Requests
from .blocks import blocks_client, check_options, cluster_blocks
from .fitting import (
    FittedClustering,
    check_append,
    check_memory,
    expected_cost,
    fit,
    format_agreement,
    label_scores,
    save_labels,
    save_table,
)
from .methods import PreparedRows, check_rows_for_clusters, check_takes_graph, parse_n_clusters, prepare
from .options import (
    AsCategory,
    AsNumber,
    AsText,
    Clusters,
    Drop,
    Id,
    Json,
    Labels,
    LabelsFromFolders,
    Memory,
    Quiet,
    RowWeight,
    Scale,
    Scheduler,
    Seed,
    Size,
    SkipBroken,
    Source,
    Text,
    UseRep,
    Weight,
    Workdir,
    parse_columns,
    parse_weights,
)
from .output import MAX_LISTED_CLUSTERS, Output, cluster_cells, make_table
from .results import (
    FILES,
    LABELS_FILE,
    MODEL_FILE,
    PAGE_FILE,
    SUMMARY_FILE,
    TABLE_FILE,
    atomic_folder,
    check_folder,
    relative_source,
    source_name,
)

ANNOUNCED_SECONDS = 5.0  # expected time from which on it is said before the start
CLUSTER_FIELDS = ("label", "name", "size", "share", "confidence")  # of a cluster's summary, in the JSON output


METHOD_HELP = "; ".join(f"{name}: {row.method.description}" for name, row in methods().items() if row.method) + "."


def cluster(
    source: Source,
    k: Clusters = "auto",
    method: Annotated[str, typer.Option(help=METHOD_HELP)] = "auto",
    labels: Labels = None,
    labels_from_folders: LabelsFromFolders = False,
    pairs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file with the columns first, second (ids or row numbers) and kind (must-link or cannot-link).",
        ),
    ] = None,
    id: Id = None,
    text: Text = None,
    drop: Drop = None,
    as_category: AsCategory = None,
    as_number: AsNumber = None,
    as_text: AsText = None,
    weight: Weight = None,
    row_weight: RowWeight = None,
    size: Size = None,
    skip_broken: SkipBroken = False,
    use_rep: UseRep = None,
    scale: Scale = "auto",
    seed: Seed = 0,
    effort: Annotated[
        str,
        typer.Option(
            help="How much --method auto compares: fast (communities and mixtures), default (also other methods and "
            "views of the rows) or thorough."
        ),
    ] = "default",
    min_cluster_size: Annotated[
        int | None, typer.Option(metavar="N", help="The smallest number of rows of a cluster, with --method auto.")
    ] = None,
    max_cluster_size: Annotated[
        int | None, typer.Option(metavar="N", help="The largest number of rows of a cluster, with --method auto.")
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Write the whole table with cluster and confidence, to table.csv, as well.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Output folder; default: out/<input name>.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the results of another input.")] = False,
    memory: Memory = None,
    workdir: Workdir = None,
    scheduler: Scheduler = None,
    no_memory_check: Annotated[
        bool, typer.Option("--no-memory-check", help="Start even if there seems to be too little memory.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Cluster rows; write labels.csv, model.npz, summary.json and report.html."""
    output, n_clusters = Output(quiet, json), parse_n_clusters(k)
    choose(methods(), method, option="method")
    choose(EFFORTS, effort, option="effort")
    folder = out or Path("out") / source_name(source)
    check_folder(folder, source, force=force, append=append)
    reading: dict[str, Any] = {
        "labels": labels,
        "id": id,
        "text": text,
        "as_category": parse_columns(as_category),
        "as_number": parse_columns(as_number),
        "as_text": parse_columns(as_text),
        "weight": parse_weights(weight),
        "row_weight": row_weight,
        "size": size,
        "skip_broken": skip_broken,
        "labels_from_folders": labels_from_folders,
        "use_rep": use_rep,
    }
    fitting: dict[str, Any] = {
        "pairs": pairs,
        "min_cluster_size": min_cluster_size,
        "max_cluster_size": max_cluster_size,
    }
    options: dict[str, Any] = {"seed": seed, "effort": effort}
    if memory or workdir or scheduler:
        check_options(memory, method=method != "auto", append=append, **reading, **fitting)
        with blocks_client(output, workdir, memory, scheduler):
            options |= {"is_local": scheduler is None}
            cluster_blocks(output, source, n_clusters, folder, parse_columns(drop), scale, **options)
        return
    with output.working(f"reading {source}"):
        data = read_input(source, drop=parse_columns(drop), **reading)
        check_rows_for_clusters(data, n_clusters)
        check_append(data, append)
        check_takes_graph(data, method)
        prepared = prepare(data, scale)
    if method == "auto" and data.kind != "graph":  # others have no model of their cost
        _announce_cost(output, expected_cost(prepared, n_clusters, effort), checks_memory=not no_memory_check)
    with output.working(f"clustering {data.n_rows} rows"):
        fitted = fit(data, prepared, method, n_clusters, **options, **fitting)
    if data.is_partially_labeled:
        output.note(_explain_guidance(data))
    with output.working("writing the report"):
        settings = {"method": method, "scale": prepared.scale, "seed": seed, **_more_settings(data, pairs)}
        about = {"source": relative_source(folder, source), "id": id, "text": text, "size": size, "append": append}
        summary = _summarize(data, fitted, prepared, title=Path(source).resolve().name, settings=settings)
        fitted = fitted._replace(cluster_names=[cluster["name"] for cluster in summary["clusters"]])
        _write_results(folder, data, fitted, _notes(data, fitted, **about), summary, append=append)
    result = _result(data, fitted, summary, method, folder, append=append)
    output.result(result, *_as_text(data, result, fitted, folder))


def _more_settings(data: Input, pairs: Path | None) -> dict[str, Any]:
    """Return what guided the fit, and which files were skipped, for the report."""
    guides = ["labels of some rows"] * data.is_partially_labeled + ["pairs"] * (pairs is not None)
    skipped = {"skipped": list(data.skipped)} if data.skipped else {}
    return {"supervision": " and ".join(guides) or "none", **skipped}


def _result(
    data: Input, fitted: FittedClustering, summary: dict[str, Any], method: str, folder: Path, *, append: bool
) -> dict[str, Any]:
    """Return the result as plain values, for the JSON output."""
    return {
        "rows": data.n_rows,
        "skipped": list(data.skipped),
        "method": method,
        "n_clusters": fitted.n_clusters,
        "clusters": [{name: row[name] for name in CLUSTER_FIELDS} for row in summary["clusters"]],
        "columns": None if data.encoder is None else data.encoder.uses_,
        "evidence": summary["evidence"],
        "caution": summary["caution"],
        "scores": label_scores(data, fitted.labels),
        "seconds": round(fitted.seconds, 3),
        "files": {name: str(folder / name) for name in (*FILES, *([TABLE_FILE] if append else []))},
    }


def _announce_cost(output: Output, cost: FitCost, *, checks_memory: bool) -> None:
    """Raise an error if there is too little memory, and say how long a long fit will take."""
    if checks_memory:
        check_memory(cost)
    if cost.seconds >= ANNOUNCED_SECONDS:
        time, peak = format_seconds(cost.seconds), format_bytes(cost.peak_bytes)
        output.note(f"clustering {cost.n_rows} rows will take about {time} and up to {peak} of memory")


def _explain_guidance(data: Input) -> str:
    """Say which known labels guided the clusters, and which class each of the first clusters stands for."""
    n_known = int((np.asarray(data.labels) >= 0).sum())
    named = first_few([f"cluster {label} is {name!r}" for label, name in enumerate(data.class_names or [])])
    return f"the known labels of {n_known} of {data.n_rows} rows guide the clustering: {named}"


def _write_results(
    folder: Path,
    data: Input,
    fitted: FittedClustering,
    notes: dict[str, Any],
    summary: dict[str, Any],
    *,
    append: bool,
) -> None:
    """Write all files, or none."""
    with atomic_folder(folder) as draft:
        names = (fitted.cluster_names, data.id_name or "id")
        save_labels(draft / LABELS_FILE, data.row_names, fitted.labels, fitted.memberships, *names)
        if append:
            save_table(draft / TABLE_FILE, data, fitted.labels, fitted.confidence)
        save(fitted.model, draft / MODEL_FILE, notes=notes)
        write_summary(summary, draft / SUMMARY_FILE)
        write_report(summary, draft / PAGE_FILE)


def _notes(data: Input, fitted: FittedClustering, **more: Any) -> dict[str, Any]:
    """Return what ``predict`` needs to read new rows, and the input from which a later run recognises its results."""
    return {
        "kind": data.kind,
        "feature_names": data.feature_names,
        "image_shape": data.image_shape and list(data.image_shape),
        "id_name": data.id_name,
        "label_name": data.label_name,
        "representation": data.representation,
        "cluster_names": fitted.cluster_names,
        **more,
    }


def _summarize(data: Input, fitted: FittedClustering, prepared: PreparedRows, **about: Any) -> dict[str, Any]:
    fully_labeled = data.labels is not None and not data.is_partially_labeled
    return summarize(
        fitted.clusterer,
        prepared.rows,
        ids=data.row_names,
        texts=data.X if data.kind == "texts" else None,
        images=None if data.image_shape is None else np.asarray(data.X).reshape(-1, *data.image_shape),
        **_columns(data, fitted),
        truth=data.labels if fully_labeled else None,
        class_names=data.class_names if fully_labeled else None,
        evidence=fitted.evidence,
        names=fitted.cluster_names,
        seconds=fitted.seconds,
        command=shlex.join(["fiedler", *sys.argv[1:]]),
        **about,
    )


def _columns(data: Input, fitted: FittedClustering) -> dict[str, Any]:
    """Return the columns by which the report describes clusters, in their own units."""
    if data.columns is None:
        return {"feature_names": fitted.model[0].get_feature_names_out()} if data.kind == "texts" else {}
    names = data.feature_names or []
    requests = Requests(text=tuple(names)) if data.kind == "texts" else Requests()
    if data.encoder is not None:
        names = [encoding.name for encoding in data.encoder.encodings_]
        encoder = data.encoder
        requests = Requests((), tuple(encoder.as_category), tuple(encoder.as_number), tuple(encoder.as_text))
    return {"original": describe_columns(data.columns, fitted.labels, fitted.n_clusters, requests, names)}


def _as_text(data: Input, result: dict[str, Any], fitted: FittedClustering, folder: Path) -> list[str | Table]:
    """Return the plan of a table, and the result, as text and tables for the terminal."""
    parts: list[str | Table] = [] if data.encoder is None else [f"{data.encoder.plan_}\n"]
    parts += [] if fitted.evidence is None else [f"{fitted.evidence}\n"]
    clusters = [row for row in result["clusters"] if row["size"]]
    count = "1 cluster" if len(clusters) == 1 else f"{len(clusters)} clusters"
    title = f"{result['rows']} rows in {count}, by {result['method']}, in {fitted.seconds:.1f} s"
    columns = ("cluster", "rows", "share", *(["confidence"] if fitted.confidence is not None else []))
    parts.append(make_table(title, *columns, rows=[cluster_cells(row) for row in clusters[:MAX_LISTED_CLUSTERS]]))
    if len(clusters) > MAX_LISTED_CLUSTERS:
        parts.append(f"... and {len(clusters) - MAX_LISTED_CLUSTERS} more, in {LABELS_FILE}")
    if fitted.confidence is not None and (n_uncertain := int((fitted.confidence <= UNCERTAIN_BELOW).sum())):
        parts.append(f"uncertain rows (confidence {UNCERTAIN_BELOW} or less): {n_uncertain}")
    if result["caution"]:
        parts.append(result["caution"])
    if result["scores"]:
        parts.append(format_agreement(result["scores"]))
    return [*parts, f"written to {folder}: {', '.join(result['files'])}"]

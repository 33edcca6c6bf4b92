"""``fiedler cluster`` writes labels, a model, a summary and a report; ``fiedler compare`` fits several methods."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.table import Table
from sklearn.metrics import silhouette_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from .._files import atomic_write
from .._registry import methods
from .._validation import choose, first_few, import_class, import_optional
from ..core.arrays import normalize_rows, to_numpy
from ..core.fitting import format_seconds
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.recipes import default_recipe
from ..graph.weights import weigh_graph
from ..io import Input, read_blocks
from ..io.formats import file_format
from ..io.read import check_source
from ..manifold import ManifoldClustering, NClustersChoice, estimate
from ..manifold.choice import EFFORTS
from ..manifold.cost import format_bytes
from ..manifold.explain import ClusterPipeline
from ..manifold.report_text import UNCERTAIN_BELOW
from ..metrics import score_table
from ..out_of_core import config_context, on_landmarks
from ..out_of_core.partition import add_moments, check_block, float_type, input_blocks
from ..out_of_core.run import check_workers, parse_memory, running_client
from ..out_of_core.store import Workspace
from ..report import summarize
from ..report.cards import describe_rows, jsonable
from ..table import TableEncoder
from ..table.columns import Requests
from ..table.profiles import Profiles, profile_table
from . import fitting, results
from .fitting import FittedClustering, NClusters, PreparedRows
from .options import Clusters, Memory, Reading, Scale, Scheduler, Seed, Source, Workdir
from .output import EXPECTED, Output, cluster_cells, make_table, n_cores, render
from .predict import encoder_of

ANNOUNCED_SECONDS = 5.0  # expected time from which on it is said before the start
CLUSTER_FIELDS = ("label", "name", "size", "share", "confidence")  # of a cluster's summary, in the JSON output
MAX_LINES, MAX_SHOWN_COLUMNS, MAX_SHOWN_CLUSTERS = 10, 6, 5  # of the result, and names in a line, without --verbose
LABELS_FOLDER = "labels"  # of the labels of blocks
REPORT_ROWS = 10_000  # of the sample of blocks that the report shows
SCALED_BY_ROWS = 100_000  # of blocks of a table, from which the scales of its columns are taken
DEFAULT_METHODS = ("auto", "lapgmm", "spectral", "lpi", "gmm", "kmeans")
SILHOUETTE_SAMPLE = 5000  # maximum number of rows for the silhouette
COLUMN_TITLES = {"clusters": "K", "modularity": "mod.", "silhouette": "silh.", "seconds": "s", "peak_mb": "MB"}
METHOD_HELP = "; ".join(f"{name}: {row.method.description}" for name, row in methods().items() if row.method) + "."


def cluster(
    *,
    source: Source,
    k: Clusters = "auto",
    method: Annotated[str, typer.Option(help=METHOD_HELP)] = "auto",
    pairs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file with the columns first, second (ids or row numbers) and kind (must-link or cannot-link).",
        ),
    ] = None,
    reading: Reading,
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
    max_clusters: Annotated[
        int | None,
        typer.Option(metavar="N", help="The largest number of clusters that --method auto may choose; default: any."),
    ] = None,
    outliers: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="The share of the rows, such as 0.01, that are in no cluster: label -1."),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="K,...",
            help="Numbers of clusters, separated by commas, whose labels are written as further columns, level_K. They "
            "are levels of one tree, which is shown with the p-value of every split. With --method auto.",
        ),
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
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Also show how each column is used, all clusters, all levels, and the evidence for every number of "
            "clusters that was compared.",
        ),
    ] = False,
    output: Output,
) -> None:
    """Cluster rows; write labels.csv, model.safetensors, summary.json and report.html."""
    n_clusters = fitting.parse_n_clusters(k)
    choose(methods(), method, option="method")
    choose(EFFORTS, effort, option="effort")
    numbers = fitting.parse_levels(levels, method)
    folder = out or Path("out") / results.source_name(source)
    check_source(source)
    results.check_folder(folder, source, force=force, append=append)
    options: dict[str, Any] = {"min_cluster_size": min_cluster_size, "max_cluster_size": max_cluster_size}
    options |= {"outliers": outliers}
    if memory or workdir or scheduler:
        keywords = reading.keywords()
        drop = keywords.pop("drop")
        check_options(memory, method=method != "auto", append=append, **keywords, pairs=pairs, levels=levels, **options)
        with blocks_client(output, workdir, memory, scheduler):
            is_local = scheduler is None
            cluster_blocks(
                output, source, n_clusters, folder, drop, scale, seed=seed, effort=effort, max_clusters=max_clusters,
                is_local=is_local, verbose=verbose,
            )  # fmt: skip
        return
    data, prepared = fitting.read_rows(output, source, reading, scale, n_clusters, [method], append=append)
    if method == "auto" and data.kind != "graph":  # others have no model of their cost
        cost = fitting.expected_cost(prepared, n_clusters, effort)
        if not no_memory_check:
            fitting.check_memory(cost)
        if cost.seconds >= ANNOUNCED_SECONDS:
            duration, peak = format_seconds(cost.seconds), format_bytes(cost.peak_bytes)
            output.note(f"clustering {cost.n_rows} rows will take about {duration} and up to {peak} of memory")
    options["max_clusters"] = max_clusters
    with output.working(f"clustering {data.n_rows} rows"):
        fitted = fitting.fit(data, prepared, method, n_clusters, seed=seed, effort=effort, pairs=pairs, **options)
    partitions = {k: to_numpy(fitted.clusterer.at(k).labels_) for k in numbers}
    if data.is_partially_labeled:
        n_known = int((np.asarray(data.labels) >= 0).sum())
        named = first_few([f"cluster {label} is {name!r}" for label, name in enumerate(data.class_names or [])])
        output.note(f"the known labels of {n_known} of {data.n_rows} rows guide the clustering: {named}")
    with output.working("writing the report"):
        guides = ["labels of some rows"] * data.is_partially_labeled + ["pairs"] * (pairs is not None)
        settings: dict[str, Any] = {"method": method, "scale": prepared.scale, "seed": seed}
        settings |= {"supervision": " and ".join(guides) or "none"}
        settings |= {"skipped": list(data.skipped)} if data.skipped else {}
        profiles = _profiles(data, fitted)
        about = {"title": Path(source).resolve().name, "settings": settings}
        summary = _summarize(data, fitted, prepared, original=profiles, **about)
        fitted = fitted._replace(cluster_names=[cluster["name"] for cluster in summary["clusters"]])
        about = {name: reading.keywords()[name] for name in ("id", "text", "size", "missing")}
        notes = _notes(data, fitted, source=results.relative_source(folder, source), append=append, **about)
        with results.atomic_folder(folder) as draft:
            rows = (data.row_names, fitted.labels, fitted.memberships, fitted.cluster_names, data.id_header)
            results.save_csv(draft / results.LABELS_FILE, results.write_labels, *rows, partitions, data.style)
            if append:
                table = (data, fitted.labels, fitted.confidence, partitions)
                results.save_csv(draft / results.TABLE_FILE, results.write_table, *table)
            model = ClusterPipeline(fitted.model.steps)
            if encoder_of(fitted.model) is not getattr(fitted.clusterer, "encoder_", None):  # which has the columns
                model.profiles_ = profiles
            results.write_files(draft, model, notes, summary)
    result = _result(data, fitted, summary, method, folder, append=append)
    result["levels"] = jsonable(fitted.clusterer.levels_) if numbers else None
    uses = summary["columns"] or []
    for column in data.plan or ():
        if other := column.values.alternative:
            output.note(f"dates in column {column.name!r} are read as {column.values.notation}, but could be {other}")
    details = _left_out(uses)
    if verbose:
        details = [_plan_as_text(uses), *([] if fitted.evidence is None else [_in_options(fitted.evidence)])]
    shown = _as_text(result, fitted.evidence, None if verbose else len(details))
    tree = _table_of_levels(result["levels"], None if verbose else numbers) if numbers else []
    output.result(result, *shown, *tree, *details, _written_to(folder, result["files"]))


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
        "n_uncertain": 0 if fitted.confidence is None else int((fitted.confidence <= UNCERTAIN_BELOW).sum()),
        "scores": fitting.label_scores(data, fitted.labels),
        "seconds": round(fitted.seconds, 3),
        "files": {name: str(folder / name) for name in (*results.FILES, *([results.TABLE_FILE] if append else []))},
    }


def _notes(data: Input, fitted: FittedClustering, **more: Any) -> dict[str, Any]:
    """Return what ``predict`` needs to read new rows, and the input from which a later run recognises its results."""
    return {
        "kind": data.kind,
        "feature_names": data.feature_names,
        "image_shape": data.image_shape and list(data.image_shape),
        "id_name": data.id_name,
        "csv_style": list(data.style),
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
        texts=_texts(data),
        images=None if data.image_shape is None else np.asarray(data.X).reshape(-1, *data.image_shape),
        columns=_column_uses(data, fitted),
        feature_names=fitted.model[0].get_feature_names_out() if data.kind == "texts" else None,
        truth=data.labels if fully_labeled else None,
        class_names=data.class_names if fully_labeled else None,
        evidence=fitted.evidence,
        names=fitted.cluster_names,
        seconds=fitted.seconds,
        command=results.command_line(),
        **about,
    )


def _texts(data: Input) -> list[str] | None:
    """Return the texts that the report shows: those that are compared, or the first column of texts of a table."""
    if data.kind == "texts":
        return data.X
    columns = [column.values.cells for column in data.plan or () if column.kind == "text"]
    return [text or "" for text in columns[0]] if columns else None


def _profiles(data: Input, fitted: FittedClustering) -> Profiles | None:
    """Return the columns of the input by cluster, in their own units; None for rows without names of columns."""
    if data.columns is not None:
        names, encoder = data.feature_names or [], encoder_of(fitted.model)
        requests = Requests(text=tuple(names)) if data.kind == "texts" else Requests()
        if encoder is not None:
            names = [encoding.name for encoding in encoder.encodings_]
            requests = Requests((), tuple(encoder.as_category), tuple(encoder.as_number), tuple(encoder.as_text))
        about = (fitted.labels, fitted.n_clusters, names, data.weights)
        return profile_table(data.read_columns(requests), *about)
    if data.kind != "texts":
        return None
    vectorizer = fitted.model[0]
    about_terms = (fitted.labels, fitted.n_clusters, None, vectorizer.get_feature_names_out())
    return describe_rows(vectorizer.counts(data.X), *about_terms)


def _column_uses(data: Input, fitted: FittedClustering) -> list[tuple[str, str, str]] | None:
    """Return the columns of a table, how each is used, and why."""
    if data.table is None:
        return None
    encoder = encoder_of(fitted.model)
    uses = {} if encoder is None else {name: (use, why) for name, use, why in encoder.columns_}
    if data.kind == "texts":
        uses |= dict.fromkeys(data.feature_names or [], ("text", "the texts that are compared"))
    uses |= {data.id_name: ("left out", "the names of the rows")} if data.id_name else {}
    uses |= {data.label_name: ("left out", "the known classes")} if data.label_name else {}
    other = ("left out", "not the texts" if data.kind == "texts" else "dropped")
    return [(name, *uses.get(name, other)) for name in data.table.columns]


def _plan_as_text(uses: list[dict[str, str]]) -> str:
    """Return how columns are used, a line for each."""
    width = max((len(column["name"]) for column in uses), default=0)
    return "\n".join(f"{column['name']:<{width}}  {column['use']:<8}  {column['why']}".rstrip() for column in uses)


def _left_out(uses: list[dict[str, str]]) -> list[str]:
    """Return a line with the columns that are left out."""
    names = [column["name"] for column in uses if column["use"] == "left out"]
    return [f"columns left out: {first_few(names, MAX_SHOWN_COLUMNS)} ({len(names)} of {len(uses)})"] if names else []


def _as_text(result: dict[str, Any], evidence: NClustersChoice | None, n_details: int | None) -> list[str | Table]:
    """Return the result for the terminal, in the lines that ``n_details`` others leave of `MAX_LINES`; all for None."""
    clusters = [row for row in result["clusters"] if row["size"]]
    method = "" if result["method"] == "auto" else f" by {result['method']}"
    how = f"{method}, in {result['seconds']:.1f} s"
    count = "one cluster" if len(clusters) == 1 else f"{len(clusters)} clusters"
    head = f"{result['rows']} rows in {count}{how}"
    if evidence is not None:
        head = f"{result['rows']} rows{how}: {_in_options(evidence.sentence)}"
    n_outliers = result["rows"] - sum(row["size"] for row in clusters)
    notes = [f"rows in no cluster (label -1): {n_outliers}"] if n_outliers else []
    notes += [*_cautions(result), *([fitting.format_agreement(scores)] if (scores := result.get("scores")) else [])]
    if len(clusters) == 1:
        return [head, *notes]
    n_free = len(clusters) if n_details is None else MAX_LINES - 3 - len(notes) - n_details  # head, titles, files
    largest = sorted(clusters, key=lambda row: -row["size"])
    cut = largest[n_free - 1 :] if len(clusters) > n_free else []
    shown = [row for row in clusters if row not in cut]
    columns = ["cluster", "rows", "share", *["confidence"] * any(row["confidence"] is not None for row in clusters)]
    table = make_table("", *columns, rows=[cluster_cells(row) for row in shown])
    sizes = first_few([f"{row['label']} ({row['size']} rows)" for row in cut], MAX_SHOWN_CLUSTERS)
    return [head, table, *([f"and {len(cut)} smaller clusters: {sizes}"] if cut else []), *notes]


def _in_options(evidence: object) -> str:
    """Return the text of evidence in terms of the command line."""
    return str(evidence).replace("n_clusters", "-k")


def _cautions(result: dict[str, Any]) -> list[str]:
    """Return a line with what makes the result doubtful, if anything does."""
    n_uncertain = result.get("n_uncertain", 0)
    cautions = ["methods and views of the rows do not agree on these clusters"] if result.get("caution") else []
    uncertain = f"uncertain rows (confidence {UNCERTAIN_BELOW} or less): {n_uncertain}"
    cautions += [uncertain] if n_uncertain else []
    return [f"caution: {'; '.join(cautions)}"] if cautions else []


def _written_to(folder: Path, files: dict[str, str]) -> str:
    """Return where the files are, the report, which people open, before the others."""
    return f"written to {folder}: {', '.join(sorted(files, key=lambda name: name != results.PAGE_FILE))}"


def _table_of_levels(levels: dict[str, list[Any]], asked: Sequence[int] | None) -> list[str | Table]:
    """Return the levels that were asked for as a table, or all."""
    rows = [
        [str(k), "-" if stability is None else f"{stability:.2f}", f"{p:.2g}", f"{split} into {into[0]} and {into[1]}"]
        for k, stability, p, split, into in zip(
            *(levels[name] for name in ("n_clusters", "stability", "p_value", "split", "into"))
        )
        if asked is None or k in asked
    ]
    return [make_table("levels", "K", "stability", "p-value", "split", rows=rows)] if rows else []


# ------------------------------------------------------------------- in blocks; the report is on a sample of the rows


Steps = list[tuple[str, Any]]


class ScaledBlocks(NamedTuple):
    """Rows of a file in blocks, as they are and scaled, and the fitted transformers that scaled them."""

    original: Any
    rows: Any
    steps: Steps
    scale: str


def read_scaled(source: str, drop: Sequence[str], scale: str) -> ScaledBlocks:
    """Open a file in blocks, and scale the columns of a table as :class:`TableEncoder` does unless told otherwise."""
    X = read_blocks(source, drop=drop)
    X = X.astype(float_type(X.dtype))
    known = file_format(Path(source))
    is_array = known is not None and known.blocks is not None
    scale = "none" if is_array and scale == "auto" else scale
    rows, steps = choose(BLOCK_SCALES, scale, option="scale")(X)
    return ScaledBlocks(X, rows, steps, scale)


def _table_columns(X: Any) -> tuple[Any, Steps]:
    encoder = TableEncoder().fit(np.concatenate([rows for rows, *_ in measure_blocks(X, SCALED_BY_ROWS)]))
    return X.map_blocks(encoder.transform, dtype=X.dtype), [("scale", encoder)]


def _standard_columns(X: Any) -> tuple[Any, Steps]:
    scaler = fit_scaler(X)
    return (X - scaler.mean_.astype(X.dtype)) / scaler.scale_.astype(X.dtype), [("scale", scaler)]


def _unit_rows(X: Any) -> tuple[Any, Steps]:
    return X.map_blocks(normalize_rows, dtype=X.dtype), [("scale", Normalizer())]


BLOCK_SCALES: dict[str, Callable[[Any], tuple[Any, Steps]]] = {
    "auto": _table_columns,
    "standard": _standard_columns,
    "unit": _unit_rows,
    "none": lambda X: (X, []),
}


def fit_scaler(X: Any) -> StandardScaler:
    """Fit a scaler in the workers."""
    mean, variance = add_moments(part[1:] for part in measure_blocks(X, 0) if part[1])
    deviation = np.sqrt(variance)
    return StandardScaler().fit(np.stack([mean - deviation, mean + deviation]))  # two rows with these moments


def measure_blocks(X: Any, n_sampled: int) -> list[tuple[np.ndarray, int, np.ndarray, np.ndarray]]:
    """Check the blocks in the workers; an error names the block and the row of a value that is not a number.

    Return about ``n_sampled`` rows in all, the numbers of rows of the blocks, their means, and the sums of squared
    deviations from these.
    """
    dask = import_optional("dask", extra="dask", purpose="Dask arrays")
    blocks = input_blocks(X)
    measure, of_each = dask.delayed(_measure_block, pure=False), math.ceil(n_sampled / len(blocks))
    return list(dask.compute(*(measure(block, number, of_each) for number, block in enumerate(blocks))))


def _measure_block(rows: Any, block: int, n_sampled: int) -> tuple[np.ndarray, int, np.ndarray, np.ndarray]:
    checked = check_block(rows, block, n_features=None, dtype=float_type(rows.dtype))
    some = np.sort(np.random.RandomState(block).permutation(len(rows))[:n_sampled])
    return rows[some], len(rows), checked.get("mean", np.zeros(0)), checked.get("deviations", np.zeros(0))


def write_parts(folder: Path, model: ManifoldClustering) -> tuple[np.ndarray, np.ndarray]:
    """Write labels and memberships, one Parquet file per block; return sizes and mean confidences of the clusters."""
    arrow = import_optional("pyarrow", extra="text", purpose="Parquet files")
    parquet = import_optional("pyarrow.parquet", extra="text", purpose="Parquet files")
    folder.mkdir()
    k, start = model.n_clusters_, 0
    sizes, confidences = np.zeros(k, dtype=np.int64), np.zeros(k)
    for number, (labels, memberships) in enumerate(zip(model.labels_.blocks, model.memberships_.blocks)):
        labels, Q = labels.compute(scheduler="synchronous"), memberships.compute(scheduler="synchronous")
        confidence = Q.max(axis=1) if len(Q) else np.zeros(0)
        columns = {"row": np.arange(start, start + len(labels)), "cluster": labels, "confidence": confidence}
        columns |= {f"cluster_{j}": Q[:, j] for j in range(k)}
        with atomic_write(folder / f"part-{number:05d}.parquet") as draft:
            parquet.write_table(arrow.table(columns), draft)
        sizes += np.bincount(labels, minlength=k)
        confidences += np.bincount(labels, confidence, minlength=k)
        start += len(labels)
    return sizes, confidences / np.maximum(sizes, 1)


def check_options(memory: str | None, **options: Any) -> None:
    """Raise an error for options that need all rows in memory, and for an amount of memory that cannot be used."""
    if memory is not None:
        parse_memory(memory)
    for name, value in options.items():
        if value:
            problem = f"--{name.replace('_', '-')} needs all rows in memory"
            hint = "leave it out, or leave out --memory, --workdir and --scheduler"
            raise InputError(problem, hint, code="not_out_of_core")


@contextmanager
def blocks_client(output: Output, workdir: Path | None, memory: str | None, scheduler: str | None) -> Iterator[None]:
    """Have the work in blocks done by workers that have the package, and say what the work directory contains."""
    workspace = Workspace.temporary() if workdir is None else Workspace(workdir)
    if workdir is not None and (found := workspace.count_finished()).n_blocks:
        output.note(f"{workdir} contains {found.n_blocks} finished blocks of {found.n_steps} steps")
    with config_context(workdir, memory=memory, scheduler=scheduler), running_client() as client:
        check_workers(client, workspace)
        yield


def cluster_blocks(
    output: Output,
    source: str,
    n_clusters: NClusters,
    folder: Path,
    drop: Sequence[str],
    scale: str,
    *,
    seed: int,
    effort: str,
    max_clusters: int | None,
    is_local: bool,
    verbose: bool,
) -> None:
    """Cluster a file in blocks; write Parquet parts, the model, and a summary and report of a sample."""
    with output.working(f"reading {source}"):
        data = read_scaled(source, drop, scale)
    n_rows, n_columns = data.rows.shape
    if not np.isnan(n_rows) and is_local:
        options: dict[str, Any] = {"effort": effort, "dtype": data.rows.dtype, "n_workers": n_cores()}
        cost = estimate(n_rows, n_columns, n_clusters, **options)
        seconds_needed, disk = format_seconds(cost.seconds), format_bytes(cost.disk_bytes or 0)
        output.note(f"clustering {n_rows} rows will take about {seconds_needed} and {disk} of disk")
    with output.working(f"clustering {source} in {data.rows.numblocks[0]} blocks"):
        started = time.perf_counter()
        clusterer = ManifoldClustering(
            n_clusters, max_clusters=max_clusters, effort=effort, random_state=seed  # type: ignore[arg-type]
        )  # fmt: skip
        clusterer.fit(data.rows)
        seconds = time.perf_counter() - started
    with output.working("writing the report"), results.atomic_folder(folder) as draft:
        sizes, confidences = write_parts(draft / LABELS_FOLDER, clusterer)
        n_rows = int(sizes.sum())
        sampled, _, numbers = on_landmarks(clusterer, REPORT_ROWS)
        original = data.original[numbers].compute()
        sample = f"a sample of {len(numbers):,} of {n_rows:,} rows" if len(numbers) < n_rows else f"all {n_rows:,} rows"
        summary = summarize(
            sampled,
            data.steps[0][1].transform(original) if data.steps else original,
            ids=[str(number) for number in numbers],
            original=original,
            title=f"{Path(source).resolve().name}: {sample}",
            seconds=seconds,
            command=results.command_line(),
            settings={"rows shown": sample, "scale": data.scale, "seed": seed},
        )
        model = Pipeline([*data.steps, ("cluster", clusterer)])
        results.write_files(draft, model, {"source": results.relative_source(folder, source), "kind": "array"}, summary)
    k = len(sizes)
    clusters = [
        {"label": label, "size": int(size), "share": size / n_rows, "confidence": float(confidence) if k > 1 else None}
        for label, (size, confidence) in enumerate(zip(sizes, confidences))
    ]
    files = (LABELS_FOLDER, results.MODEL_FILE, results.SUMMARY_FILE, results.PAGE_FILE)
    result: dict[str, Any] = {
        "rows": n_rows,
        "method": "auto",
        "n_clusters": len(clusters),
        "clusters": clusters,
        "seconds": round(seconds, 3),
        "files": {name: str(folder / name) for name in files},
    }
    details = [_in_options(clusterer.evidence_)] if verbose and clusterer.evidence_ is not None else []
    shown = _as_text(result, clusterer.evidence_, None if verbose else 1)
    output.result(result, *shown, *details, f"the report shows {sample}", _written_to(folder, result["files"]))


# ------------------------------------------------------------------------------------------------------------ compare


def compare(
    *,
    source: Source,
    k: Clusters = "auto",
    methods: Annotated[
        str,
        typer.Option(
            help=f"Methods to compare, separated by commas: {', '.join(methods())}, or an estimator of another package "
            "or of your own, such as sklearn.cluster:KMeans."
        ),
    ] = ",".join(DEFAULT_METHODS),
    reading: Reading,
    scale: Scale = "auto",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the table to a CSV file.")] = None,
    output: Output,
) -> None:
    """Compare methods by scores with and without known labels, time and memory.

    The normalised cut (lower is better) and the modularity (higher is better) are measured on the same graph for all
    methods, the silhouette on the rows. No single score decides: each favours the method that optimises it.
    """
    names, n_clusters = _parse_methods(methods), fitting.parse_n_clusters(k)
    results.check_file(out)
    data, prepared = fitting.read_rows(output, source, reading, scale, n_clusters, names, allow_graph=False)
    left_out = {
        "labels": [name for name in names if data.is_partially_labeled and not fitting.accepts(name, "labels")],
        "weights of rows": [name for name in names if data.weights is not None and not fitting.takes_weights(name)],
    }
    for kind, without in left_out.items():
        do, are = ("do", "are") if len(without) > 1 else ("does", "is")
        if without:
            output.note(f"{', '.join(without)} {do} not accept {kind} and {are} fitted without them")
    evidence, rows = None, []
    if n_clusters == "auto":
        with output.working("choosing the number of clusters"):
            n_clusters, evidence = fitting.choose_number(prepared, data.weights)
    with output.working("building the graph"):
        scorer = UnsupervisedScorer(prepared.rows, seed, data.weights)
    for i, name in enumerate(names, start=1):
        with output.working(f"{name} ({i} of {len(names)})"):
            rows.append(_fit_and_score(data, prepared, name, n_clusters, seed, scorer))
    if all("failed" in row for row in rows):
        problem = f"no method could be fitted; {rows[0]['method']}: {rows[0]['failed']}"
        raise InputError(problem, code="all_methods_failed")
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if out is not None:
        with atomic_write(out) as draft, draft.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
    shown = [name for name in columns if name != "failed"]
    cells = [[_format(row.get(column)) for column in shown] for row in rows]
    output.result(
        {"rows": data.n_rows, "skipped": list(data.skipped), "methods": rows, "evidence": jsonable(evidence)},
        *([] if evidence is None else [f"{evidence.sentence}\n"]),
        make_table(
            f"{data.n_rows} rows",
            *((COLUMN_TITLES | fitting.SCORE_TITLES).get(name, name) for name in shown),
            rows=cells,
        ),
        *(f"{row['method']} failed: {row['failed']}" for row in rows if "failed" in row),
        *([] if out is None else [f"written to {out}"]),
    )


def _parse_methods(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("--methods is empty", f"choose some of {', '.join(methods())}", code="invalid_parameter")
    for name in names:
        import_class(name) if fitting.is_import_path(name) else choose(methods(), name, option="methods")
    return names


class UnsupervisedScorer:
    """Scores of labels that need no known classes, on the same graph and rows for every method."""

    def __init__(self, rows: Any, seed: int, weights: np.ndarray | None = None) -> None:
        self.rows, self.seed, self.has_rows = rows, seed, not isinstance(rows, AffinityGraph)
        self.graph = weigh_graph(default_recipe(rows.shape[0]).build(rows) if self.has_rows else rows, weights)

    def score(self, labels: np.ndarray) -> dict[str, float]:
        """Return cut and modularity and, for two or more clusters of rows, the silhouette."""
        scores = score_table(None, labels, self.graph)
        if self.has_rows and 1 < len(np.unique(labels)) < len(labels):
            size = min(SILHOUETTE_SAMPLE, len(labels))
            scores["silhouette"] = float(silhouette_score(self.rows, labels, sample_size=size, random_state=self.seed))
        return scores


def _fit_and_score(
    data: Input, prepared: PreparedRows, method: str, n_clusters: NClusters, seed: int, scorer: UnsupervisedScorer
) -> dict[str, Any]:
    """Return a method's row of the table, or the reason why it could not be fitted."""
    supervised = data if fitting.accepts(method, "labels") else data._replace(labels=None)
    supervised = supervised if fitting.takes_weights(method) else supervised._replace(weights=None)
    try:
        fitted = fitting.fit(supervised, prepared, method, n_clusters, seed=seed)
    except EXPECTED as error:
        return {"method": method, "failed": render(error)}
    return {
        "method": method,
        "clusters": len(np.unique(fitted.labels)),
        **scorer.score(fitted.labels),
        **fitting.label_scores(data, fitted.labels),
        "seconds": round(fitted.seconds, 3),
        "peak_mb": fitted.peak_mb,
    }


def _format(value: Any) -> str:
    if value is None:
        return "-"
    return f"{round(value, 3) + 0:.3f}" if isinstance(value, float) else str(value)  # + 0 turns -0.0 into 0.0

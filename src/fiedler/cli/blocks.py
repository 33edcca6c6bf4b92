"""``fiedler cluster`` in blocks, for files that exceed the memory: Parquet parts, and a report on a sample."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from .._files import atomic_write
from .._validation import choose, import_optional
from ..clustering import BlockCost, ManifoldClustering, estimate
from ..clustering.cost_records import format_bytes
from ..core.progress import format_seconds
from ..core.rows import normalize_rows
from ..errors import InputError
from ..io import read_blocks
from ..out_of_core import config_context, on_landmarks
from ..out_of_core.config import parse_memory, running_client
from ..out_of_core.rows import add_moments, check_block, float_type, input_blocks
from ..out_of_core.run import check_workers
from ..out_of_core.workspace import Workspace
from ..persistence import save
from ..report import summarize, write_report, write_summary
from .methods import NClusters
from .output import MAX_LISTED_CLUSTERS, Output, cluster_cells, make_table, n_cores
from .results import MODEL_FILE, PAGE_FILE, SUMMARY_FILE, atomic_folder, relative_source

LABELS_FOLDER = "labels"
REPORT_ROWS = 10_000  # of the sample that the report shows
BLOCK_SCALES = ("standard", "unit", "none")


class ScaledBlocks(NamedTuple):
    """Rows of a file in blocks.

    Attributes
    ----------
    original, rows : dask.array.Array
        As they are in the file, and scaled.
    steps : list
        The fitted transformers that scaled them.
    scale : str
    """

    original: Any
    rows: Any
    steps: list[tuple[str, Any]]
    scale: str


def read_scaled(source: str, drop: Sequence[str], scale: str) -> ScaledBlocks:
    """Open a file in blocks, and scale the columns of a table to mean 0 and variance 1 unless told otherwise."""
    X = read_blocks(source, drop=drop)
    X = X.astype(float_type(X.dtype))
    is_table = Path(source).suffix not in (".npy", ".zarr")
    scale = ("standard" if is_table else "none") if scale == "auto" else scale
    choose(dict.fromkeys(BLOCK_SCALES), scale, option="scale", also=["auto"])
    if scale == "none":
        return ScaledBlocks(X, X, [], scale)
    if scale == "unit":
        return ScaledBlocks(X, X.map_blocks(normalize_rows, dtype=X.dtype), [("scale", Normalizer())], scale)
    scaler = fit_scaler(X)
    scaled = (X - scaler.mean_.astype(X.dtype)) / scaler.scale_.astype(X.dtype)
    return ScaledBlocks(X, scaled, [("scale", scaler)], scale)


def fit_scaler(X: Any) -> StandardScaler:
    """Fit a scaler in the workers; an error names the block and the row of a value that is not a number."""
    dask = import_optional("dask", extra="dask", purpose="Dask arrays")
    measure = dask.delayed(_measure_block, pure=False)
    parts = dask.compute(*(measure(block, number) for number, block in enumerate(input_blocks(X))))
    mean, variance = add_moments(part for part in parts if part[0])
    deviation = np.sqrt(variance)
    return StandardScaler().fit(np.stack([mean - deviation, mean + deviation]))  # two rows with these moments


def _measure_block(rows: Any, block: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of rows of a block, their means, and the sums of squared deviations from these."""
    checked = check_block(rows, block, n_features=None, dtype=float_type(rows.dtype))
    return len(rows), checked.get("mean", np.zeros(0)), checked.get("deviations", np.zeros(0))


def fit_blocks(
    data: ScaledBlocks,
    n_clusters: NClusters,
    *,
    seed: int,
    effort: str,
) -> tuple[Pipeline, float]:
    """Cluster the rows; return the fitted pipeline and the seconds it took."""
    started = time.perf_counter()
    model = ManifoldClustering(n_clusters, effort=effort, random_state=seed)  # type: ignore[arg-type]
    model.fit(data.rows)
    return Pipeline([*data.steps, ("cluster", model)]), time.perf_counter() - started


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
        columns = {"row": np.arange(start, start + len(labels)), "label": labels, "confidence": confidence}
        columns |= {f"cluster_{j}": Q[:, j] for j in range(k)}
        with atomic_write(folder / f"part-{number:05d}.parquet") as draft:
            parquet.write_table(arrow.table(columns), draft)
        sizes += np.bincount(labels, minlength=k)
        confidences += np.bincount(labels, confidence, minlength=k)
        start += len(labels)
    return sizes, confidences / np.maximum(sizes, 1)


def sample_for_report(data: ScaledBlocks, model: ManifoldClustering) -> tuple[ManifoldClustering, Any, Any, np.ndarray]:
    """Return the model on a sample of the rows, these rows scaled and as they are, and their numbers."""
    sampled, _, numbers = on_landmarks(model, REPORT_ROWS)
    rows = data.original[numbers].compute()
    scaled = rows if not data.steps else data.steps[0][1].transform(rows)
    return sampled, scaled, rows, numbers


def check_options(memory: str | None, **options: Any) -> None:
    """Raise an error for options that need all rows in memory, and for an amount of memory that cannot be used."""
    if memory is not None:
        parse_memory(memory)
    for name, value in options.items():
        if value:
            raise InputError(
                f"--{name.replace('_', '-')} needs all rows in memory",
                "leave it out, or leave out --memory, --workdir and --scheduler",
                code="not_out_of_core",
                parameter=name,
            )


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
    is_local: bool,
) -> None:
    """Cluster a file in blocks; write Parquet parts, the model, and a summary and report of a sample."""
    with output.working(f"reading {source}"):
        data = read_scaled(source, drop, scale)
    n_rows, n_columns = data.rows.shape
    if not np.isnan(n_rows) and is_local:
        options: dict[str, Any] = {"effort": effort, "dtype": data.rows.dtype, "n_workers": n_cores()}
        cost = cast("BlockCost", estimate(n_rows, n_columns, n_clusters, **options))
        seconds_needed, disk = format_seconds(cost.seconds), format_bytes(cost.disk_bytes)
        output.note(f"clustering {n_rows} rows will take about {seconds_needed} and {disk} of disk")
    with output.working(f"clustering {source} in {data.rows.numblocks[0]} blocks"):
        model, seconds = fit_blocks(data, n_clusters, seed=seed, effort=effort)
    with output.working("writing the report"), atomic_folder(folder) as draft:
        sizes, confidences = write_parts(draft / LABELS_FOLDER, model[-1])
        n_rows = int(sizes.sum())
        sampled, rows, original, numbers = sample_for_report(data, model[-1])
        sample = f"a sample of {len(numbers):,} of {n_rows:,} rows" if len(numbers) < n_rows else f"all {n_rows:,} rows"
        summary = summarize(
            sampled,
            rows,
            ids=[str(number) for number in numbers],
            original=original,
            title=f"{Path(source).resolve().name}: {sample}",
            seconds=seconds,
            command=shlex.join(["fiedler", *sys.argv[1:]]),
            settings={"rows shown": sample, "scale": data.scale, "seed": seed},
        )
        save(model, draft / MODEL_FILE, notes={"source": relative_source(folder, source), "kind": "array"})
        write_summary(summary, draft / SUMMARY_FILE)
        write_report(summary, draft / PAGE_FILE)
    clusters = [
        {"label": label, "size": int(size), "share": size / n_rows, "confidence": float(confidence)}
        for label, (size, confidence) in enumerate(zip(sizes, confidences))
    ]
    files = (LABELS_FOLDER, MODEL_FILE, SUMMARY_FILE, PAGE_FILE)
    result = {
        "rows": n_rows,
        "method": "auto",
        "n_clusters": len(clusters),
        "clusters": clusters,
        "seconds": round(seconds, 3),
        "files": {name: str(folder / name) for name in files},
    }
    title = f"{n_rows} rows in {len(clusters)} clusters, in {seconds:.1f} s"
    shown = [cluster_cells(row) for row in clusters[:MAX_LISTED_CLUSTERS]]
    table = make_table(title, "cluster", "rows", "share", "confidence", rows=shown)
    output.result(result, table, f"the report shows {sample}", f"written to {folder}: {', '.join(files)}")

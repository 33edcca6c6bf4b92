"""Cluster a folder of Parquet files in blocks, within a memory limit, and write a report of a sample.

    python examples/parquet_folder.py

The folder is made first, with 60,000 rows in six files, so that the example runs in half a minute; nothing in it
depends on the size. The same from the command line:

    fiedler cluster out/example/rows -k 6 --memory 2GB --workdir out/example/work --out out/example/results
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fiedler import ManifoldClustering
from fiedler.datasets import tanh_manifold
from fiedler.io import read_blocks
from fiedler.metrics import clustering_accuracy
from fiedler.out_of_core import config_context, on_landmarks
from fiedler.report import summarize, write_report

FOLDER = Path("out") / "example"


def make_files(folder: Path, n_files: int = 6, rows_per_file: int = 10_000) -> np.ndarray:
    """Write embeddings as a column of vectors; return the true clusters."""
    folder.mkdir(parents=True, exist_ok=True)
    X, y = tanh_manifold(n_files * rows_per_file, n_clusters=6, ambient=32, dtype="float32", random_state=0)
    for number, part in enumerate(np.split(X, n_files)):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), part.shape[1])
        pq.write_table(pa.table({"embedding": vectors}), folder / f"part-{number}.parquet")
    return y


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    y = make_files(FOLDER / "rows")

    X = read_blocks(FOLDER / "rows")
    with config_context(FOLDER / "work", memory="2GB"):
        model = ManifoldClustering(n_clusters=6, random_state=0).fit(X)

    labels = model.labels_.compute()  # 60,000 integers; of more rows, write them with model.labels_.to_zarr
    print(f"{len(labels)} rows in {model.n_clusters_} clusters, accuracy {clustering_accuracy(y, labels):.3f}")

    sample, rows, numbers = on_landmarks(model, max_rows=5_000)
    summary = summarize(sample, rows, ids=numbers, title=f"A sample of {len(numbers)} of {len(labels)} rows")
    write_report(summary, FOLDER / "report.html")
    print(f"report: {FOLDER / 'report.html'}")


if __name__ == "__main__":
    main()

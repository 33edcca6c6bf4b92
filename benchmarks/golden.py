"""Freeze what the library computes, and compare a later version with it bit for bit.

    python benchmarks/golden.py freeze out/golden.npz      # with the old version
    python benchmarks/golden.py compare out/golden.npz     # with the new one

Labels, memberships, embeddings, predictions of every estimator on a few sets; the files and texts of commands; the
codes of errors. Bits depend on the processor and on BLAS, so that a frozen file belongs to one machine.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import contextlib
import hashlib
import io
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs

import fiedler
from fiedler.datasets import two_moons

OUTPUTS = ("labels_", "memberships_", "embedding_", "components_", "outlier_score_", "n_clusters_", "row_agreement_")
METHODS = ("predict", "predict_proba", "transform", "score_samples")
WORDS = [
    "graph",
    "matrix",
    "cluster",
    "river",
    "bridge",
    "water",
    "music",
    "guitar",
    "piano",
    "market",
    "price",
    "trade",
]


def sets() -> dict[str, tuple[Any, np.ndarray]]:
    """Return small sets of different kinds: rows and classes."""
    digits, iris, wine = load_digits(), load_iris(), load_wine()
    blobs = make_blobs(240, n_features=5, centers=4, random_state=3)
    counts = np.random.RandomState(0).poisson(0.4, size=(150, 40))
    counts[:50, :12] += 2
    counts[50:100, 12:24] += 2
    counts[100:, 24:36] += 2
    return {
        "iris": (iris.data, iris.target),
        "wine": ((wine.data - wine.data.mean(0)) / wine.data.std(0), wine.target),
        "digits": (digits.data[:400], digits.target[:400]),
        "moons": two_moons(n_samples=200, noise=0.05, random_state=0),
        "blobs": blobs,
        "blobs32": (blobs[0].astype(np.float32), blobs[1]),
        "counts": (sp.csr_array(counts.astype(float)), np.repeat([0, 1, 2], 50)),
    }


def estimators() -> dict[str, Callable[[int], Any]]:
    """Return how each estimator is made for a number of clusters."""
    from fiedler import baselines, embedding, mixture, supervision  # noqa: F401

    f, seed = fiedler, {"random_state": 0}
    knn = f.KNNGraph(n_neighbors=5)
    return {
        "ManifoldClustering": lambda k: f.ManifoldClustering(k, **seed),
        "ManifoldClustering auto": lambda k: f.ManifoldClustering(**seed),
        "ManifoldClustering fast": lambda k: f.ManifoldClustering(k, effort="fast", **seed),
        "ManifoldClustering thorough": lambda k: f.ManifoldClustering(k, effort="thorough", **seed),
        "ManifoldClustering graph": lambda k: f.ManifoldClustering(k, graph=knn, outliers=0.05, **seed),
        "ManifoldClustering outliers": lambda k: f.ManifoldClustering(k, outliers=0.05, **seed),
        "ManifoldClustering sizes": lambda k: f.ManifoldClustering(k, min_cluster_size=20, **seed),
        "LapGMM": lambda k: f.LapGMM(k, **seed),
        "LapGMM anchored": lambda k: f.LapGMM(k, solver="anchored", **seed),
        "LapGMM printed": lambda k: f.LapGMM(k, solver="printed", **seed),
        "LCGMM": lambda k: f.LCGMM(k, **seed),
        "GaussianMixture": lambda k: f.GaussianMixture(k, **seed),
        "GaussianMixture diag": lambda k: f.GaussianMixture(k, covariance_type="diag", **seed),
        "SpectralClustering": lambda k: f.SpectralClustering(k, **seed),
        "SpectralClustering njw": lambda k: f.SpectralClustering(k, cut="njw", **seed),
        "SpectralClustering ratio": lambda k: f.SpectralClustering(k, cut="ratio", **seed),
        "GenieLinkage": lambda k: f.GenieLinkage(k),
        "GenieLinkage local": lambda k: f.GenieLinkage(k, length="local", gini_threshold=0.1),
        "LPIClustering": lambda k: f.LPIClustering(k, **seed),
        "LPIClustering kmeans": lambda k: f.LPIClustering(k, assign="kmeans", **seed),
        "NLE": lambda k: f.NLE(k, n_init=2, max_iter=100, **seed),
        "NLE ncut": lambda k: f.NLE(k, n_init=2, max_iter=100, cut="ncut", init="auto", **seed),
        "EmbedKMeans": lambda k: f.EmbedKMeans(k, **seed),
        "EmbedKMeans LPI": lambda k: f.EmbedKMeans(k, f.LPI(graph=knn), n_components="k-1", **seed),
        "EmbedKMeans LE": lambda k: f.EmbedKMeans(k, f.LaplacianEigenmaps(), n_components="k-1", **seed),
        "LPI": lambda k: f.LPI(2, graph=knn),
        "LPI regression": lambda k: f.LPI(2, graph=knn, solver="regression"),
        "LaplacianEigenmaps": lambda k: f.LaplacianEigenmaps(),
        "LaplacianEigenmaps plain": lambda k: f.LaplacianEigenmaps(normalized=False),
        "HessianEigenmaps": lambda k: f.HessianEigenmaps(graph=f.KNNGraph(n_neighbors=8)),
        "Whitening": lambda k: f.Whitening(),
        "Whitening cells": lambda k: f.Whitening(by="cells", n_cells=3, **seed),
        "Whitening edges": lambda k: f.Whitening(by="edges"),
        "Directions": lambda k: f.Directions(),
        "LearnedLaplacian": lambda k: f.LearnedLaplacian(max_iter=10),
        "LearnedLaplacian diagonal": lambda k: f.LearnedLaplacian(
            metric="diagonal", optimizer="doubling", pair_weight=1.0, max_iter=10
        ),
        "LLGC": lambda k: f.LLGC(),
        "LLGC plain": lambda k: f.LLGC(normalize=None, alpha=0.5),
        "NMFClustering": lambda k: f.baselines.NMFClustering(k, **seed),
        "GNMF": lambda k: f.baselines.GNMF(k, n_init=1, max_iter=50, **seed),
        "MMC": lambda k: f.baselines.MMC(max_iter=20),
        "LMNN": lambda k: f.baselines.LMNN(max_iter=10),
        "MPCKMeans": lambda k: f.baselines.MPCKMeans(k, **seed),
        "TransductiveSVM": lambda k: f.baselines.TransductiveSVM(),
        "KNNGraph": lambda k: f.KNNGraph(n_neighbors=5),
        "KNNGraph local": lambda k: f.KNNGraph(n_neighbors=5, weight="local"),
        "RadiusGraph": lambda k: f.RadiusGraph(radius=4.0),
        "FullGraph": lambda k: f.FullGraph(weight="heat", bandwidth=1.5),
        "LandmarkGraph": lambda k: f.LandmarkGraph(n_landmarks=30, weight="heat", bandwidth=2.0, random_state=0),
    }


SUPERVISED = ("LearnedLaplacian", "LLGC", "MMC", "LMNN", "TransductiveSVM")
PAIRS = ("ManifoldClustering", "LapGMM", "LCGMM", "SpectralClustering", "NLE", "LPIClustering", "GaussianMixture")


def dense(value: Any) -> np.ndarray | None:
    """Return a value as an array of numbers, or None."""
    if sp.issparse(value):
        value = value.toarray()
    try:
        array = np.asarray(value)
    except Exception:
        return None
    return array if array.dtype.kind in "biuf" else None


def outputs(model: Any, X: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a fitted model has computed, and what it predicts."""
    for name in OUTPUTS:
        yield name, getattr(model, name, None)
    if not hasattr(model, "fit"):
        graph = model.build(X)
        yield "weights", getattr(graph, "weights", graph.degrees)
        return
    new = X[: min(60, X.shape[0])] * 1.01
    for name in METHODS:
        if hasattr(model, name):
            try:
                yield name, getattr(model, name)(new)
            except fiedler.errors.FiedlerError as error:
                yield name, f"{type(error).__name__} {error.code}"


def fits() -> Iterator[tuple[str, Any]]:
    """Yield the results of all estimators on all sets."""
    for data, (X, y) in sets().items():
        k, rng = len(np.unique(y)), np.random.RandomState(0)
        some = np.where(rng.rand(len(y)) < 0.15, y, -1)
        links = rng.randint(len(y), size=(40, 2))
        links = links[links[:, 0] != links[:, 1]]
        same = y[links[:, 0]] == y[links[:, 1]]
        pairs = fiedler.PairwiseConstraints(must_link=links[same], cannot_link=links[~same], n_samples=len(y))
        for name, make in estimators().items():
            variants: dict[str, dict[str, Any]] = {"": {}}
            if name.split()[0] in SUPERVISED:
                variants = {"": {"y": some if name.split()[0] != "LMNN" else y}}
            elif name in PAIRS:
                variants["pairs"] = {"constraints": pairs}
                variants["weights"] = {"sample_weight": 1.0 + np.arange(len(y)) % 3}
                if name in ("ManifoldClustering", "LapGMM", "LCGMM", "GaussianMixture"):
                    variants["labels"] = {"y": some}
            for variant, options in variants.items():
                key = f"{data}/{name}/{variant}"
                model = make(k)
                try:
                    if hasattr(model, "fit"):
                        model.fit(X, **options)
                except fiedler.errors.FiedlerError as error:
                    yield key, f"{type(error).__name__} {error.code}"
                    continue
                except Exception as error:
                    yield key, f"{type(error).__name__}"
                    continue
                try:
                    for output, value in outputs(model, X):
                        yield f"{key}/{output}", value
                except Exception as error:
                    yield key, f"{type(error).__name__} {getattr(error, 'code', None)}"


def write_inputs(folder: Path) -> None:
    """Write small files of several kinds."""
    rng, iris = np.random.RandomState(1), load_iris()
    rows = ["id;height;price;colour;since;note"]
    for i in range(180):
        kind = i % 3
        price = f"{10 * kind + rng.rand():.2f}".replace(".", ",")
        height = "" if i % 17 == 0 else f"{150 + 20 * kind + 3 * rng.randn():.1f}".replace(".", ",")
        words = " ".join(rng.choice(WORDS[4 * kind : 4 * kind + 4], size=6))
        rows.append(f"A{i};{height};{price} €;{('red', 'green', 'blue')[kind]};2024-0{kind + 1}-1{i % 9};{words}")
    (folder / "mixed.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    header = ",".join(iris.feature_names)
    np.savetxt(folder / "iris.csv", iris.data, delimiter=",", header=header, comments="", fmt="%.3f")
    np.save(folder / "iris.npy", iris.data)
    texts = [" ".join(rng.choice(WORDS[4 * (i % 3) : 4 * (i % 3) + 4], size=12)) for i in range(120)]
    (folder / "texts.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf-8")
    (folder / "broken.csv").write_text("a,b\n1,2\n3\n4,5,6\n", encoding="utf-8")
    (folder / "empty.csv").write_text("", encoding="utf-8")


COMMANDS = (
    "--help", "cluster --help", "predict --help", "update --help", "compare --help", "report --help", "doctor --help",
    "cluster iris.csv -k 3 --seed 0 --out iris", "cluster mixed.csv -k 3 --seed 0 --out mixed",
    "cluster mixed.csv --seed 0 --out mixed_auto",
    "cluster iris.npy -k 3 --seed 0 --method lapgmm --out iris_lapgmm",
    "cluster iris.npy -k 3 --seed 0 --method spectral --out iris_spectral",
    "cluster texts.jsonl -k 3 --seed 0 --out texts",
    "predict iris iris.csv --out predicted.csv", "predict mixed mixed.csv --out predicted_mixed.csv",
    "update iris iris.csv", "report mixed",
    "compare iris.csv -k 3 --seed 0 --out compared",
    "cluster broken.csv -k 3", "cluster empty.csv -k 3", "cluster missing.csv", "cluster iris.csv -k 0",
    "cluster iris.csv -k 1000", "cluster iris.csv --method nothing", "predict iris.csv iris.csv",
    "cluster iris.npy -k two",
)  # fmt: skip


def neutral(text: str) -> str:
    """Return a text without times, versions and the state of the machine."""
    text = re.sub(r"\d+(\.\d+)?(e-\d+)? ?(s|ms|seconds?|min|MB|MiB|GB|GiB|kB|KiB)\b", "#", text)
    text = re.sub(r"[ ,]+\d+\.\d+[ ,]+\d+ *$", " #", text, flags=re.MULTILINE)  # seconds and MB of `compare`
    text = re.sub(r'"(seconds|created|version|versions|time|date)": ?[^,}\n]+', r'"\1": #', text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[:.\d+Z]*", "#", text)
    return text.replace("model.safetensors", "model.npz")  # as model files were called when results were frozen


def commands() -> Iterator[tuple[str, Any]]:
    """Yield what commands print, how they end, and the files they write (model files by name alone)."""
    from fiedler.cli import main

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        os.chdir(folder)
        try:
            for line in COMMANDS:
                known = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    try:
                        sys.argv = ["fiedler", *line.split()]
                        code: Any = main()
                    except SystemExit as ending:
                        code = ending.code
                yield f"$ {line}", f"exit {code or 0}\n{neutral(out.getvalue())}\n--\n{neutral(err.getvalue())}"
                for path in sorted(folder.rglob("*")):
                    if path.is_file() and known.get(path) != path.read_bytes():
                        shown = neutral(str(path.relative_to(folder)))
                        if path.suffix in (".png", ".npz", ".safetensors"):
                            yield f"$ {line} > {shown}", "written"
                        else:
                            yield f"$ {line} > {shown}", neutral(path.read_text(encoding="utf-8", errors="replace"))
        finally:
            os.chdir(before)


def errors() -> Iterator[tuple[str, Any]]:
    """Yield the sentences of errors of wrong calls."""
    X = load_iris().data
    nan, few = X.copy(), X[:2]
    nan[3, 1] = np.nan
    calls: dict[str, Callable[[], Any]] = {
        "nan": lambda: fiedler.cluster(nan),
        "too many": lambda: fiedler.cluster(few, 3),
        "word": lambda: fiedler.cluster(X, "three"),
        "effort": lambda: fiedler.cluster(X, 3, effort="low"),
        "outliers": lambda: fiedler.cluster(X, 3, outliers=1.5),
        "text": lambda: fiedler.cluster("iris.csv"),
        "graph": lambda: fiedler.cluster(X, 3, graph="knn"),
        "labels": lambda: fiedler.cluster(X, 3, y=[0, 1, -1]),
        "weights": lambda: fiedler.cluster(X, 3, sample_weight=-np.ones(150)),
        "sizes": lambda: fiedler.cluster(X, 3, min_cluster_size=80),
        "solver": lambda: fiedler.LapGMM(3, solver="none").fit(X),
        "lam": lambda: fiedler.LapGMM(3, lam=-1).fit(X),
        "cut": lambda: fiedler.SpectralClustering(3, cut="none").fit(X),
        "neighbors": lambda: fiedler.KNNGraph(n_neighbors=0).build(X),
        "weight": lambda: fiedler.KNNGraph(weight="none").build(X),
        "negative": lambda: fiedler.LPIClustering(3).fit(X - 3),
        "not fitted": lambda: fiedler.LapGMM(3).predict(X),
        "features": lambda: fiedler.LapGMM(3, random_state=0).fit(X).predict(X[:, :2]),
        "alpha": lambda: fiedler.LLGC(alpha=2).fit(X, np.zeros(150)),
        "load": lambda: fiedler.load("missing.fiedler"),
        "data": lambda: fiedler.datasets.load("nothing"),
        "attribute": lambda: fiedler.nothing,
        "count": lambda: fiedler.choose_n_clusters(X, [1000]),
    }
    for name, call in calls.items():
        try:
            call()
            yield f"error {name}", "none"
        except Exception as error:
            code = getattr(error, "code", None)
            yield f"error {name}", f"{type(error).__name__} {code}: {neutral(str(error))}"


def collect() -> dict[str, Any]:
    """Return all results by name: arrays and texts."""
    results: dict[str, Any] = {}
    for part in (fits, commands, errors):
        for name, value in part():
            array = None if isinstance(value, str) else dense(value)
            if isinstance(value, str):
                results[name] = value
            elif array is not None:
                results[name] = array
    return results


def freeze(path: Path) -> None:
    """Write all results to a file."""
    results = collect()
    arrays = {name: value for name, value in results.items() if not isinstance(value, str)}
    texts = {name: value for name, value in results.items() if isinstance(value, str)}
    numbered = {f"{i}": value for i, value in enumerate(arrays.values())}
    np.savez_compressed(
        path, __texts__=np.array(json.dumps(texts)), __names__=np.array(json.dumps(list(arrays))), **numbered
    )
    print(f"{len(arrays)} arrays, {len(texts)} texts to {path}, {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}")


def compare(path: Path) -> int:
    """Compare all results with those of a file; return the number of differences."""
    frozen = np.load(path)
    names = json.loads(str(frozen["__names__"]))
    before = {name: frozen[str(i)] for i, name in enumerate(names)} | json.loads(str(frozen["__texts__"]))
    now, differences = collect(), 0
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if isinstance(old, str) or isinstance(new, str) or old is None or new is None:
            if isinstance(old, str) and isinstance(new, str) and old == new:
                continue
            differences += 1
            print(f"{name}:\n" + "\n".join(text_difference(old, new)))
        elif old.shape != new.shape or old.dtype != new.dtype:
            differences += 1
            print(f"{name}: {old.dtype}{old.shape} -> {new.dtype}{new.shape}")
        elif not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
            differences += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                largest = np.nanmax(np.abs(old - new * 1.0))
            print(f"{name}: {np.sum(old != new)} of {old.size} differ, by up to {largest:.3g}")
    print(f"{differences} of {len(before)} results differ")
    return differences


def text_difference(old: Any, new: Any) -> Iterator[str]:
    """Yield the first lines that differ."""
    import difflib

    lines = [value.splitlines() if isinstance(value, str) else [str(np.shape(value)) if value is not None else "absent"]
             for value in (old, new)]  # fmt: skip
    yield from [f"    {line[:200]}" for line in difflib.unified_diff(*lines, n=0, lineterm="")][2:14]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    verb, target = sys.argv[1], Path(sys.argv[2]).resolve()
    sys.exit(freeze(target) if verb == "freeze" else min(compare(target), 1))

"""Mutated model and graph files: ``python tests/file_fuzzing.py --n 1000000 --jobs 2 --folder out/fuzz-files``.

A mutated file is refused with one sentence, or read; what is read may be wrong, and predictions may fail with an error.
A finding is any other error while reading, a crash, a long time or much memory. Its file is left in the folder.
"""

import argparse
import hashlib
import json
import math
import multiprocessing
import resource
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import NMF, PCA, TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

import fiedler
from fiedler import AffinityGraph, EmbedKMeans, FullGraph, KNNGraph, LapGMM, ManifoldClustering, SpectralClustering
from fiedler._registry import storable_classes
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.errors import FiedlerError
from fiedler.persistence import DECODERS, TENSOR_DTYPES
from fiedler.text import DocumentVectorizer
from registry_instances import check_instances

REFUSED, LOADED, FAILED = "refused", "loaded", "failed"  # the last one: loaded, but a prediction raised an error
MAX_SECONDS = 10  # of one mutation
MAX_GROWTH = 400 * 2**20  # bytes of memory that one mutation may add to the largest so far

Arrays = dict[str, np.ndarray]


# ---------------------------------------------------------------------------------------------- taking files apart


def parse(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON text and the arrays of a valid file."""
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    names = {tensor: dtype for dtype, tensor in TENSOR_DTYPES.items()}
    content = json.loads(header.pop("__metadata__")["fiedler"])
    arrays = {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        arrays[name] = np.frombuffer(body[start:stop], names[entry["dtype"]]).reshape(entry["shape"])
    return content, arrays


def build(content: Any, arrays: Arrays, change_header: Callable[[dict[str, Any]], None] = lambda header: None) -> bytes:
    """Return a file with a correct checksum; its header may be changed to contradict the rest."""
    text = json.dumps({**content, "sha256": "0" * 64}) if isinstance(content, dict) else content
    header: dict[str, Any] = {"__metadata__": {"fiedler": text}}
    start = 0
    for name, array in arrays.items():
        dtype, offsets = TENSOR_DTYPES.get(array.dtype.name, "BF16"), [start, start + array.nbytes]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": offsets}
        start += array.nbytes
    change_header(header)
    encoded = json.dumps(header).encode()
    data = len(encoded).to_bytes(8, "little") + encoded + b"".join(array.tobytes() for array in arrays.values())
    return data.replace(b"0" * 64, hashlib.sha256(data).hexdigest().encode(), 1)


# ------------------------------------------------------------------------------------------------------- mutations

PLAIN = [None, True, 0, 1, -1, 7, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, math.nan, math.inf, "", "a", "auto"]
PLAIN += ["heat", "precomputed", "\ud800", "\x1b[2J", "../x", [], {}, [[]], "a0", {"array": "a0"}, {"tuple": []}]
NUMBERS = [0, 1, -1, 2, 100, 2**31 - 1, -(2**31), 2**62, 1e308, 5e-324, math.nan, -math.inf]
NAMES = [
    "predict",
    "fit",
    "__class__",
    "__dict__",
    "x_",
    "labels_",
    "n_jobs",
    "memory",
    "vocabulary_",
    "_weights",
    "a b",
]
SHAPES = [[], [-1], [2**62, 4], [0, 2**60], [2**40], "x", None]


def mutate_bytes(data: bytes, rng: Random) -> bytes:
    """Flip, overwrite, remove, repeat or append bytes."""
    at, action = rng.randrange(len(data)), rng.randrange(5)
    if action == 0:
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if action == 1:
        return data[:at] + rng.choice([b"\xff" * 4, b"{}", b'""', b"]]"]) + data[at + 1 :]
    if action == 2:
        return data[:at]
    return data[:at] + data[at // 2 :] if action == 3 else data + rng.choice([b"\x00", b"\n", data])


def mutate_content(content: dict[str, Any], rng: Random) -> None:
    """Replace, remove, copy or rename a part of the JSON text."""
    places, open_nodes = [], [content]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, dict | list):
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            places += [(node, key) for key in keys]
            open_nodes += [node[key] for key in keys]
    container, key = rng.choice(places)
    other, name = rng.choice(places)
    value, action = container[key], rng.randrange(6)
    if action == 0:
        del container[key]
    elif action == 1:
        container[key] = json.loads(json.dumps(other[name]))
    elif action == 2 and isinstance(container, dict):
        container[rng.choice([*NAMES, *DECODERS, str(name)])] = container.pop(key)
    elif action == 3 and isinstance(value, str):
        container[key] = rng.choice([*storable_classes(), *DECODERS, "a1", "a5", value[::-1]])
    elif action == 4 and isinstance(value, int | float):
        container[key] = rng.choice([value + 1, -value, value * 1000, str(value), *NUMBERS])
    elif isinstance(value, list):
        container[key] = rng.choice([value * 2, value[::-1], value[:-1], [value], [*value, None]])
    else:
        container[key] = rng.choice(PLAIN)


def mutate_array(array: np.ndarray, rng: Random) -> np.ndarray:
    """Change the type, the shape or some values of an array."""
    action, changed = rng.randrange(4), array.copy()
    with np.errstate(all="ignore"):
        if action == 0:
            return array.astype(rng.choice(list(TENSOR_DTYPES)))
        if action == 1:
            n = max(0, array.shape[0] + rng.choice([1, -1, 5])) if array.ndim else 1
            return np.resize(array, (n, *array.shape[1:]))
        if action == 2:
            return rng.choice(
                [array.T, array[None], array.ravel(), array.reshape(-1, 1), array[:0] if array.ndim else array]
            )
        for _ in range(rng.choice([1, 3])):
            if changed.size:
                changed.flat[rng.randrange(changed.size)] = np.array(rng.choice(NUMBERS)).astype(changed.dtype)
    return changed


def mutate(data: bytes, rng: Random) -> bytes:
    """Return a mutation of a file."""
    if rng.random() < 0.1:
        return mutate_bytes(data, rng)
    content, arrays = parse(data)
    for _ in range(rng.choice([1, 1, 1, 2])):
        if not arrays or rng.random() < 0.6:
            mutate_content(content, rng)
        else:
            name = rng.choice(list(arrays))
            arrays[name] = mutate_array(arrays[name], rng)

    def change_header(header: dict[str, Any]) -> None:
        if rng.random() < 0.1 and arrays:
            entry = header[rng.choice(list(arrays))]
            part = rng.choice(["dtype", "shape", "data_offsets"])
            entry[part] = rng.choice([*TENSOR_DTYPES.values(), "BF16", "F8_E4M3"] if part == "dtype" else SHAPES)

    return build(content, arrays, change_header)


# ------------------------------------------------------------------------------------------------------- valid files


class Seed(NamedTuple):
    """A valid file, and rows that its model can predict; a graph has none."""

    name: str
    content: bytes
    rows: Any = None


@cache
def make_seeds(quick: bool = False) -> list[Seed]:
    """Return files of models of every class, or of a few classes, and of graphs."""
    rng = np.random.RandomState(0)
    X, y = np.abs(np.concatenate([rng.normal(size=(8, 3)) + 4 * i for i in range(3)])), np.repeat([0, 1, 2], 8)
    texts = ["stars and planets", "a planet and its star", "bread and butter", "butter on fresh bread"] * 3
    quick_names = ("SpectralClustering", "GaussianMixture", "LLGC", "LPI")
    names = [name for name in storable_classes() if name != "TransductiveSVM" and (not quick or name in quick_names)]
    cases: list[tuple[Any, Any, Any]] = [(clone(model), X, y) for model in check_instances(*names)]
    cases += [(make_pipeline(DocumentVectorizer(weight="tfidf"), EmbedKMeans(2)), texts, None)]
    cases += [(make_pipeline(step, EmbedKMeans(2)), X, None) for step in (StandardScaler(), NMF(2, max_iter=500))]
    if not quick:
        steps = (MinMaxScaler(), Normalizer(), TruncatedSVD(2), PCA(2))
        cases += [(make_pipeline(step, EmbedKMeans(2)), X, None) for step in steps]
        cases += [(make_pipeline(DocumentVectorizer(n_hash_features=16), EmbedKMeans(2)), texts, None)]
        cases += [(LapGMM(3, covariance_type=kind, random_state=0), X, None) for kind in ("tied", "diag", "spherical")]
        cases += [(SpectralClustering(2), sp.csr_array(X), None), (ManifoldClustering("auto", max_clusters=4), X, None)]
    seeds = []
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "seed.safetensors"
        for model, rows, labels in cases:
            if "random_state" in model.get_params():
                model.set_params(random_state=0)
            fiedler.save(model.fit(rows, labels), path, notes={"columns": ["a"], "n": 3})
            seeds.append(Seed(str(model), path.read_bytes(), rows[:3]))
        for recipe in (KNNGraph(3, weight="local"), FullGraph("heat")):
            recipe.build(X).save(path)
            seeds.append(Seed(str(recipe), path.read_bytes()))
    return seeds


# --------------------------------------------------------------------------------------------------------- the search


def examine(path: Path, rows: Any = None) -> str:
    """Read a file and use what it contains; any error of reading that is not one sentence of fiedler is raised."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            value: Any = AffinityGraph.load(path) if rows is None else fiedler.load(path)
        except FiedlerError as error:
            if "\n" in str(error):
                raise AssertionError(f"an error of several lines: {error!r}") from error
            return REFUSED
        try:
            if rows is None:
                value.components(), smallest_eigenpairs(value, min(2, value.n_nodes))
            for name in ("predict", "predict_proba", "transform"):
                if rows is not None and hasattr(value, name):
                    getattr(value, name)(rows)
        except Exception:  # a crafted model may be wrong
            return FAILED
        return LOADED


class Hang(BaseException):
    """A mutation took too long."""


def _alarm(*_: Any) -> None:
    raise Hang


def search(folder: Path, number: int, n: int, random_state: int) -> None:
    """Examine ``n`` mutations; print the outcomes and end with status 1 if there was a finding."""
    signal.signal(signal.SIGALRM, _alarm)
    rng, seeds, outcomes = Random(f"{random_state} {number}"), make_seeds(), Counter[str]()
    for i in range(n):
        seed, path = rng.choice(seeds), folder / f"current-{number}.safetensors"  # which stays after a crash
        path.write_bytes(mutate(seed.content, rng))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
        try:
            outcome, report = examine(path, seed.rows), ""
            if 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) > MAX_GROWTH:
                outcome, report = "finding", "memory grew"
        except (Hang, Exception):
            outcome, report = "finding", traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        outcomes[outcome] += 1
        if report:
            path.replace(folder / f"finding-{number}-{i}.safetensors")
            (folder / f"finding-{number}-{i}.txt").write_text(f"{seed.name}\n{report}")
    path.unlink(missing_ok=True)
    print(json.dumps(outcomes), flush=True)
    sys.exit(int(outcomes["finding"] > 0))


def main() -> int:
    """Run all processes; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000, help="mutations in all")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--folder", type=Path, default=Path("out/fuzz-files"), help="files of findings")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    n, context = -(-options.n // options.jobs), multiprocessing.get_context("spawn")
    processes = [context.Process(target=search, args=(options.folder, i, n, options.seed)) for i in range(options.jobs)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return int(any(process.exitcode for process in processes))


if __name__ == "__main__":
    sys.exit(main())

"""Mutate files, guided by coverage: ``python -m file_fuzzing.run --n 1000000 --jobs 2 --folder out/fuzz``.

A mutation that reaches a new pair of lines in the modules that read files is kept and mutated further. Every process
works through numbered batches and appends one line of JSON for each to ``batches-<process>.jsonl``; a second run with
the same folder goes on after the last one. Findings are described in ``findings.jsonl`` and stored beside it.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import fiedler

from .mutate import mutate
from .seeds import Seed, make_seeds
from .target import examine

BATCH = 1000  # mutations
MAX_SECONDS = 10  # of one mutation
MAX_GROWTH = 400 * 2**20  # bytes of memory that one mutation may add to the largest so far
TRACED_SHARE = 0.25  # of mutations whose lines are followed, since that takes as long again
MAX_KEPT = 3000  # mutations that are mutated further
READERS = (
    "_model_schema",
    "_archive.py",
    "persistence.py",
    "graph/files.py",
    "graph/weights.py",
    "report/page.py",
)
TRACED = tuple(str(Path(fiedler.__file__).parent / name) for name in READERS)

Arcs = set[tuple[Any, int, int]]


class Coverage:
    """The pairs of successive lines that run in the modules that read files."""

    def __init__(self) -> None:
        self.arcs: Arcs = set()

    def __enter__(self) -> Arcs:
        self.new: Arcs = set()
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self.new

    def __exit__(self, *_: Any) -> None:
        sys.settrace(self.before)
        self.new -= self.arcs
        self.arcs |= self.new

    def _call(self, frame: Any, event: str, _: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(TRACED):
            return None
        last, new = 0, self.new

        def line(frame: Any, event: str, _: Any) -> Any:
            nonlocal last
            new.add((code, last, frame.f_lineno))
            last = frame.f_lineno
            return line

        return line


class Hang(BaseException):
    """A mutation took too long."""


def _alarm(*_: Any) -> None:
    raise Hang


def peak_memory() -> int:
    """Return the largest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def try_one(seed: Seed, data: bytes) -> tuple[str, str | None]:
    """Examine a mutation; return the outcome and, of a finding, its description."""
    before = peak_memory()
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        outcome = examine(seed.kind, data, seed.rows)
    except Hang:
        return "finding", f"it took more than {MAX_SECONDS} s\n{traceback.format_exc()}"
    except Exception:
        return "finding", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if peak_memory() > before + MAX_GROWTH:
        return "finding", f"memory grew by {(peak_memory() - before) >> 20} MiB"
    return outcome, None


def signature(report: str) -> str:
    """Return the last line of ours in a traceback and the class of the error, which tell findings apart."""
    ours = [line.strip() for line in report.splitlines() if "src/fiedler" in line]
    return f"{ours[-1].split('src/')[-1] if ours else ''} {report.strip().splitlines()[-1].split(':')[0]}"


class Worker:
    """One process: its seeds, the mutations that it keeps, and its records."""

    def __init__(self, folder: Path, number: int, random_state: int) -> None:
        self.folder, self.number, self.random_state = folder, number, random_state
        self.records, self.coverage = folder / f"batches-{number}.jsonl", Coverage()
        self.kept = list(make_seeds())
        self.known: set[str] = set()
        for seed in self.kept[:]:
            with self.coverage:
                examine(seed.kind, seed.content, seed.rows)
        for path in sorted(folder.glob(f"kept-{number}/*")):
            self.kept.append(make_seeds()[int(path.name.split("-")[0])]._replace(content=path.read_bytes()))

    def finished(self) -> int:
        """Return the number of batches that are done."""
        return len(self.records.read_text().splitlines()) if self.records.exists() else 0

    def run_batch(self, number: int) -> Counter:
        """Examine the mutations of a batch and write its record."""
        rng, counts, start = Random(f"{self.random_state} {self.number} {number}"), Counter(), time.perf_counter()
        for _ in range(BATCH):
            seed = rng.choice(self.kept)
            other = rng.choice(self.kept)
            data = mutate(seed.kind, seed.content, other.content if other.kind == seed.kind else seed.content, rng)
            with self.coverage if rng.random() < TRACED_SHARE else nullcontext(set()) as new:
                outcome, report = try_one(seed, data)
            counts[outcome] += 1
            if report is not None:
                self._store_finding(seed, data, report)
            elif new and len(self.kept) < MAX_KEPT:
                self._keep(seed, data)
        record = {"batch": number, **counts, "arcs": len(self.coverage.arcs), "kept": len(self.kept)}
        record["seconds"] = round(time.perf_counter() - start, 1)
        record["peak_mib"] = peak_memory() >> 20
        with self.records.open("a") as file:
            file.write(json.dumps(record) + "\n")
        return counts

    def _keep(self, seed: Seed, data: bytes) -> None:
        index = next(i for i, one in enumerate(make_seeds()) if one.name == seed.name and one.kind == seed.kind)
        folder = self.folder / f"kept-{self.number}"
        folder.mkdir(exist_ok=True)
        (folder / f"{index}-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)
        self.kept.append(seed._replace(content=data))

    def _store_finding(self, seed: Seed, data: bytes, report: str) -> None:
        if (name := signature(report)) in self.known:
            return
        self.known.add(name)
        digest = hashlib.sha256(data).hexdigest()[:16]
        (self.folder / f"finding-{digest}").write_bytes(data)
        record = {"file": f"finding-{digest}", "kind": seed.kind, "seed": seed.name, "at": name, "report": report}
        with (self.folder / "findings.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")


def work(folder: Path, number: int, n_batches: int, random_state: int) -> None:
    """Run the batches of one process that are not done yet."""
    signal.signal(signal.SIGALRM, _alarm)
    worker = Worker(folder, number, random_state)
    for batch in range(worker.finished(), n_batches):
        worker.run_batch(batch)


def summarize_records(folder: Path) -> dict[str, Any]:
    """Add up the records of all processes."""
    records = [json.loads(line) for path in folder.glob("batches-*.jsonl") for line in path.read_text().splitlines()]
    total = {name: sum(record.get(name, 0) for record in records) for name in ("refused", "loaded", "finding")}
    findings = folder / "findings.jsonl"
    lines = findings.read_text().splitlines() if findings.exists() else []
    seconds = sum(record["seconds"] for record in records)
    peak = max((record["peak_mib"] for record in records), default=0)
    kinds = sorted({json.loads(line)["at"] for line in lines})
    return {"mutations": sum(total.values()), **total, "kinds": kinds, "seconds": round(seconds), "peak_mib": peak}


def main() -> int:
    """Run all processes, and print what was found; the exit status is 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000, help="mutations in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--folder", type=Path, default=Path("out/fuzz-files"), help="records, kept mutations, findings")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    n_batches = -(-options.n // (BATCH * options.jobs))
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=work, args=(options.folder, number, n_batches, options.seed))
        for number in range(options.jobs)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    summary = summarize_records(options.folder)
    print(json.dumps(summary, indent=1))
    return int(bool(summary["finding"]) or any(process.exitcode for process in processes))


if __name__ == "__main__":
    sys.exit(main())

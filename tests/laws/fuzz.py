"""Run many examples of every law, with a record, and continue where the last run ended.

    python -m laws.fuzz run out/fuzz.jsonl --examples 100000 --jobs 16
    python -m laws.fuzz summary out/fuzz.jsonl
    python -m laws.fuzz page out/fuzz.jsonl docs/reliability.md
    python -m laws.fuzz repeat LAW SUBJECT "CASE"

The work is cut into units of one law, one subject and a batch of examples. A unit that is done is one line of the
record; a unit that has a line is not run again, except with ``--again`` if it found a defect. The last line of a unit
counts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import time
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

BATCH = 25  # examples of a unit
MAX_SECONDS = 60  # of one example; a longer one is a defect
MAX_DEFECTS = 3  # of one kind, kept of a unit
FUNCTION = "function"  # the subject of laws that are not about an estimator


class Unit(NamedTuple):
    """One law on one subject, and the number of the batch."""

    law: str
    subject: str
    batch: int

    @property
    def seed(self) -> int:
        return zlib.crc32("|".join(map(str, self)).encode())


# --------------------------------------------------------------------------------------------------------- the work


def pairs_of_law_and_subject() -> list[tuple[str, str]]:
    """All laws with the subjects that they are about."""
    from .functions import FUNCTION_LAWS
    from .laws import LAWS
    from .subjects import subjects

    found = [(name, one.name) for name, law in LAWS.items() for one in subjects() if law.applies(one)]
    return found + [(name, FUNCTION) for name in FUNCTION_LAWS for _ in range(10)]  # as many examples as 10 estimators


def units(n_examples: int) -> list[Unit]:
    """Units of at least so many examples in sum; the first batch of all pairs comes first."""
    pairs = pairs_of_law_and_subject()
    n_batches = -(-n_examples // (BATCH * len(pairs)))
    counts: Counter[tuple[str, str, int]] = Counter()
    found = []
    for _ in range(n_batches):
        for law, subject in pairs:
            found.append(Unit(law, subject, counts[law, subject, 0]))
            counts[law, subject, 0] += 1
    return found


def law_of(name: str, subject: str) -> tuple[Any, Any]:
    """Return the check of one case, and the strategy of cases."""
    from .functions import FUNCTION_LAWS
    from .laws import LAWS
    from .subjects import Subject

    if subject == FUNCTION:
        return FUNCTION_LAWS[name].check, FUNCTION_LAWS[name].cases()
    one = Subject(subject)
    return (lambda case: LAWS[name].check(one, case)), LAWS[name].cases(one)


def run_unit(unit: Unit, tell: Callable[[str], None] = lambda case: None) -> dict[str, Any]:
    """Run the examples of a unit and return its line of the record; ``tell`` is called with each case first."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    check, cases = law_of(unit.law, unit.subject)
    refusals: Counter[str] = Counter()
    defects: list[dict[str, str]] = []
    n_examples, start = 0, time.perf_counter()

    @seed(unit.seed)
    @settings(
        max_examples=BATCH,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def examples(case: Any) -> None:
        nonlocal n_examples
        n_examples += 1
        tell(repr(case))
        refused, defect = run_example(check, case)
        if refused is not None:
            refusals[refused] += 1
        if defect is not None and sum(one["kind"] == defect["kind"] for one in defects) < MAX_DEFECTS:
            defects.append(defect)

    examples()
    return {
        **unit._asdict(),
        "examples": n_examples,
        "seconds": round(time.perf_counter() - start, 3),
        "refusals": dict(refusals),
        "defects": defects,
    }


def run_example(check: Any, case: Any) -> tuple[str | None, dict[str, str] | None]:
    """Return the code of the error with which a case was refused, and the defect, if any."""
    from .guard import LawBroken

    try:
        return check(case), None
    except LawBroken as error:
        return None, {"kind": error.kind, "message": str(error)[:300], "case": repr(case)}


def run(record: Path, n_examples: int, jobs: int, *, again: bool = False) -> None:
    """Run the units that the record does not contain yet."""
    done = read(record)
    finished = {key for key, line in done.items() if not (again and line["defects"])}
    todo = [unit for unit in units(n_examples) if unit not in finished]
    print(f"{len(finished)} units done, {len(todo)} to do, {jobs} processes", flush=True)
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a+b") as binary:  # a kill may have cut the last line off
        if binary.tell() and (binary.seek(-1, os.SEEK_END), binary.read())[1] != b"\n":
            binary.write(b"\n")
    with record.open("a", encoding="utf-8") as file:
        for count, line in enumerate(_lines(todo, jobs), start=1):
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            for defect in line["defects"]:
                print(f"{line['law']} | {line['subject']} | {defect['message']}", flush=True)
            if count % 200 == 0:
                print(f"{count} of {len(todo)} units", flush=True)


def _lines(todo: list[Unit], jobs: int) -> Iterator[dict[str, Any]]:
    """Give the units to worker processes; one that dies or takes too long is a defect, and another takes its place."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    left = deque(todo)
    workers = [Worker() for _ in range(min(jobs, len(todo)))]
    try:
        for worker in workers:
            worker.start(left.popleft())
        while busy := [worker for worker in workers if worker.unit is not None]:
            wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in busy:
                line = worker.poll()
                if line is not None:
                    yield line
                    worker.start(left.popleft() if left else None)
    finally:
        for worker in workers:
            worker.end()


class Worker:
    """A process that runs units, and the case that it is at."""

    def __init__(self) -> None:
        self.unit: Unit | None = None
        self._launch()

    def _launch(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def start(self, unit: Unit | None) -> None:
        """Begin a unit."""
        self.unit, self.case, self.since = unit, "", time.monotonic()
        if unit is not None:
            self.pipe.send(unit)

    def poll(self) -> dict[str, Any] | None:
        """Return the line of the unit if it has ended, in one way or another."""
        try:
            while self.pipe.poll():
                message = self.pipe.recv()
                if isinstance(message, dict):
                    return message
                self.case, self.since = message, time.monotonic()
        except (EOFError, OSError):
            return self._replace("the process died")
        if time.monotonic() - self.since > MAX_SECONDS:
            return self._replace(f"more than {MAX_SECONDS} s")
        return None

    def _replace(self, kind: str) -> dict[str, Any]:
        """Start another process, and return a line with the case at which this one was."""
        self.end()
        self._launch()
        assert self.unit is not None
        defect = {"kind": kind, "message": kind, "case": self.case}
        return {**self.unit._asdict(), "examples": 1, "seconds": 0.0, "refusals": {}, "defects": [defect]}

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Any) -> None:
    """Run units until the pipe is closed, and tell each case before it is tried."""
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            pipe.send(run_unit(pipe.recv(), tell=pipe.send))


def read(record: Path) -> dict[Unit, dict[str, Any]]:
    """Read the last line of each unit; a line that was cut off by a kill is left out."""
    found = {}
    if record.exists():
        for text in record.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                line = json.loads(text)
                found[Unit(line["law"], line["subject"], line["batch"])] = line
    return found


# ------------------------------------------------------------------------------------------------------ what was found


def totals(lines: Iterable[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Add the counts of each law: subjects, examples, examples refused with an error, and defects."""
    found: dict[str, dict[str, int]] = {}
    names: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        names[line["law"]].add(line["subject"])
        one = found.setdefault(line["law"], dict.fromkeys(("examples", "refused", "defects"), 0))
        one["examples"] += line["examples"]
        one["refused"] += sum(line["refusals"].values())
        one["defects"] += len(line["defects"])
    return {law: {"subjects": len(names[law]), **one} for law, one in found.items()}


def table(lines: Iterable[dict[str, Any]]) -> str:
    """Write the table of the documentation: a row for each law, and their sum."""
    from .functions import FUNCTION_LAWS
    from .laws import LAWS

    counts = totals(lines)
    rows = ["| law | subjects | examples | refused | defects |", "|---|--:|--:|--:|--:|"]
    for name, law in {**LAWS, **FUNCTION_LAWS}.items():
        if name in counts:
            one = counts[name]
            rows.append(
                f"| {law.sentence} | {one['subjects']} | {one['examples']:,} | {one['refused']:,} | {one['defects']} |"
            )
    sums = {key: sum(one[key] for one in counts.values()) for key in ("examples", "refused", "defects")}
    rows.append(f"| **all** | | **{sums['examples']:,}** | **{sums['refused']:,}** | **{sums['defects']}** |")
    return "\n".join(rows)


def summary(lines: Iterable[dict[str, Any]]) -> str:
    """Write the counts of each law, and one case of each kind of defect."""
    lines = list(lines)
    text = [f"{'law':24}{'subjects':>10}{'examples':>10}{'refused':>10}{'defects':>10}"]
    for law, one in totals(lines).items():
        text.append(f"{law:24}{one['subjects']:>10}{one['examples']:>10}{one['refused']:>10}{one['defects']:>10}")
    kinds: dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, str]]]] = defaultdict(list)
    for line in lines:
        for defect in line["defects"]:
            kinds[line["subject"].split("(")[0], defect["kind"]].append((line, defect))
    for (subject, kind), cases in sorted(kinds.items(), key=lambda item: -len(item[1])):
        line, defect = min(cases, key=lambda case: len(case[1]["case"]))
        text += ["", f"{len(cases)} x {subject}: {kind}", f"    {defect['message']}"]
        text.append(f"    repeat {line['law']!r} {line['subject']!r} {defect['case']!r}")
    seconds = sum(line["seconds"] for line in lines)
    text += ["", f"{sum(line['examples'] for line in lines):,} examples in {seconds:,.0f} s of processor time"]
    return "\n".join(text)


BEGIN, END = "<!-- the table of laws: written by make fuzz -->", "<!-- end of the table of laws -->"


def write_page(lines: Iterable[dict[str, Any]], page: Path) -> None:
    """Replace the table of a page."""
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n\n{table(lines)}\n\n{END}{tail}", encoding="utf-8")


def condense(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the batches of each law and subject, for a short record."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        key = (line["law"], line["subject"])
        new = {"law": key[0], "subject": key[1], "batch": 0, "examples": 0, "seconds": 0, "refusals": {}, "defects": []}
        one = found.setdefault(key, new)
        one["examples"] += line["examples"]
        one["seconds"] = round(one["seconds"] + line["seconds"], 1)
        one["refusals"] = dict(sorted((Counter(one["refusals"]) + Counter(line["refusals"])).items()))
        one["defects"] = one["defects"] + line["defects"]
    return list(found.values())


def case_from(text: str) -> Any:
    """Make a case from its printed form."""
    from registry_instances import Spec

    from . import functions, laws, strategies

    names = {name: value for module in (functions, laws, strategies) for name, value in vars(module).items()}
    return eval(text, {**names, "Spec": Spec})


def main(arguments: list[str] | None = None) -> int:
    """Run, summarise, or repeat one case."""
    parser = argparse.ArgumentParser(prog="python -m laws.fuzz", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run")
    command.add_argument("record", type=Path)
    command.add_argument("--examples", type=int, default=100_000)
    command.add_argument("--jobs", default="1", help="number of processes, or auto")
    command.add_argument("--again", action="store_true", help="run units that found a defect once more")
    commands.add_parser("summary").add_argument("record", type=Path)
    command = commands.add_parser("page")
    command.add_argument("record", type=Path)
    command.add_argument("page", type=Path)
    command.add_argument("--short", type=Path, help="also write the record, one line for each law and subject, here")
    command = commands.add_parser("repeat")
    for name in ("law", "subject", "case"):
        command.add_argument(name)
    args = parser.parse_args(arguments)
    if args.command == "repeat":
        check, _ = law_of(args.law, args.subject)
        print(check(case_from(args.case)))
        return 0
    if args.command == "run":
        run(
            args.record, args.examples, os.cpu_count() or 1 if args.jobs == "auto" else int(args.jobs), again=args.again
        )
    lines = list(read(args.record).values())
    if args.command == "page":
        write_page(lines, args.page)
        if args.short is not None:
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in condense(lines))
            args.short.write_text(text, encoding="utf-8")
        return 0
    print(summary(lines))
    return 1 if any(line["defects"] for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())

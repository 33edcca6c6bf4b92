"""The k-th file operation of a command fails, for every k: one sentence, exit code 1, all files old or all files new.

``FIEDLER_FAULTS=all`` tries every k also where that takes minutes; of allocations, the first forty, then one in
twenty.
"""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")

from faults.inject import FILE_FAULTS, Fault, contents, every_fault
from fiedler._files import DRAFT_PREFIX
from fiedler.cli import cluster, main
from fiedler.cli import predict as update
from fiedler.cli.results import finish_results
from fiedler.datasets import blobs

EVERY_FAULT = os.environ.get("FIEDLER_FAULTS") == "all"


class Case(NamedTuple):
    """A command, and by which factor k grows for file operations and for allocations, as some commands take long."""

    arguments: str
    step: float = 1.0
    allocation_step: float = 2.0


CASES = {
    "cluster": Case("cluster rows.csv -k 2 --method kmeans --id name --out results", 1.5, 6.0),
    "cluster --append": Case("cluster rows.csv -k 2 --method kmeans --id name --out results --append", 2.0, 30.0),
    "cluster, a new folder": Case("cluster rows.csv -k 2 --method kmeans --id name --out new/folder", 2.0, 30.0),
    "update": Case("update auto more.csv --id name", 2.5, 30.0),
    "predict": Case("predict results more.csv --id name --out old.csv"),
    "predict --append": Case("predict results more.csv --id name --append --out old.csv"),
    "compare": Case("compare rows.csv -k 2 --methods kmeans,spectral --id name --out old.csv"),
    "report": Case("report results"),
    "doctor": Case("doctor", allocation_step=4.0),
}


def run(capsys, arguments: str, fault: Fault | None = None) -> tuple[int, str]:
    """Run ``fiedler`` in this process; return the exit code and what it printed to standard error."""
    code = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fiedler", *arguments.split()])
        if fault is not None:
            fault.install(patch)
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return code, capsys.readouterr().err


def write_rows(path: Path, n: int, seed: int) -> None:
    X, _ = blobs(n, n_features=3, n_clusters=3, random_state=seed)
    lines = [f"{path.stem}{i},{a:.4f},{b:.4f},{c:.4f}" for i, (a, b, c) in enumerate(X)]
    path.write_text("\n".join(["name,x,y,z", *lines, ""]))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with rows, results and an older file, made once."""
    folder = tmp_path_factory.mktemp("template")
    write_rows(folder / "rows.csv", 24, 0)
    write_rows(folder / "more.csv", 6, 1)
    (folder / "old.csv").write_text("from an earlier run\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for arguments in ("--method kmeans --out results", "--out auto"):
            command = f"cluster rows.csv -k 3 --id name -q {arguments}"
            patch.setattr(sys, "argv", ["fiedler", *command.split()])
            with suppress(SystemExit):
                main()
    (folder / "results" / "report.html").write_text("from an earlier run\n")
    return folder


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    """A copy of it, in which the commands run."""
    shutil.copytree(template, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def computed_once(monkeypatch):
    """Compute a fit and its summary once, since only files matter here."""
    for module, names in ((cluster.fitting, ("fit",)), (cluster, ("_summarize",)), (update, ("_summarize",))):
        for name in names:
            monkeypatch.setattr(module, name, _remember(getattr(module, name)))


def _remember(function):
    results = []

    def first_result(*args, **kwargs):
        if not results:
            results.append(function(*args, **kwargs))
        return results[0]

    return first_result


def restore(folder: Path, template: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(template, folder)
    os.chdir(folder)


def assert_old_or_new(folder, old, new):
    """All files are the old ones, or all that the command changes are new; no drafts are left."""
    for results in (folder / "results", folder / "auto", folder / "new" / "folder"):
        finish_results(results)  # as the next command does
    found = contents(folder)
    if found != old:
        changed = {name for name in new if new[name] != old.get(name)}
        assert set(found) == set(new)
        assert not {name for name in changed if found[name] == old.get(name)}
        assert all(found[name] == old[name] for name in set(new) - changed)


def assert_one_sentence(code, err, sentence):
    errors = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert code == 1
    assert len(errors) == 1
    assert errors[0].startswith("fiedler: ")
    assert sentence in errors[0]


@pytest.mark.slow
@pytest.mark.usefixtures("computed_once")
@pytest.mark.parametrize("lasting", [False, True] if EVERY_FAULT else [False])
@pytest.mark.parametrize("kind", FILE_FAULTS)
@pytest.mark.parametrize("name", [name for name in CASES if name != "doctor"])  # which writes nothing
def test_all_files_are_old_or_all_are_new(name, kind, lasting, folder, template, capsys):
    case, old = CASES[name], contents(folder)
    assert run(capsys, case.arguments)[0] == 0
    new = contents(folder)
    step = 1.0 if EVERY_FAULT else case.step
    for fault in every_fault(kind, folder, lasting=lasting, step=step):
        restore(folder, template)
        code, err = run(capsys, case.arguments, fault)
        assert_old_or_new(folder, old, new)
        if code:
            assert_one_sentence(code, err, "o many open files" if kind == "open" else "o space left on device")
        else:
            assert set(contents(folder)) == set(new)
    assert code == 0


@pytest.mark.parametrize("name", CASES)
def test_a_lack_of_memory_is_one_sentence_and_leaves_the_old_files(name, folder, template, capsys):
    case, old = CASES[name], contents(folder)
    for fault in every_fault("allocate", folder, step=1.05 if EVERY_FAULT else case.allocation_step):
        restore(folder, template)
        code, err = run(capsys, case.arguments, fault)
        if code:
            assert_one_sentence(code, err, "not enough memory")
            assert contents(folder) == old
    assert code == 0


@pytest.mark.parametrize("name", ["cluster", "cluster, a new folder", "predict"])
def test_the_next_run_removes_the_drafts_of_one_that_was_killed(name, folder, capsys):
    killed = 2**22 + 1  # above the largest number of a process
    for place in (folder, folder / "results"):
        (place / f"{DRAFT_PREFIX}{killed}-0123abcd").mkdir()
        (place / f"{DRAFT_PREFIX}{killed}-0123abcd.csv").write_text("half of a")
    ours = folder / f"{DRAFT_PREFIX}{os.getpid()}-0123abcd.csv"  # of another thread of this process
    ours.write_text("half of a")
    assert run(capsys, CASES[name].arguments)[0] == 0

    unused = None if name == "cluster" else folder / "results"  # where this command writes nothing
    assert [path for path in folder.rglob(".fiedler*") if path.parent != unused] == [ours]

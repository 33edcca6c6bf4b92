"""The distribution: its version, its data and its command."""

import inspect
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import fiedler
import fiedler_papers
from fiedler.errors import InputError
from fiedler_papers import list_protocols, reproduce
from fiedler_papers.protocol import CHECKOUT_FOLDER

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_that_of_the_library():
    assert fiedler_papers.__version__ == fiedler.__version__
    assert f"fiedler[cli,plot]=={fiedler.__version__}" in PROJECT["project"]["dependencies"]


def test_the_wheel_contains_the_folder_of_every_paper():
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    sources = {key: f"fiedler_papers/data/{key}" for key in list_protocols(CHECKOUT_FOLDER)}
    assert wheel["sources"] == {"src/fiedler_papers": "fiedler_papers", **sources}
    assert set(wheel["only-include"]) == set(wheel["sources"])


def test_the_python_block_of_the_page_on_reproducing_runs(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[2] / "docs" / "reproduce.md"
    (block,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(block, names)
    assert "'lapgmm': 'He, Cai" in capsys.readouterr().out
    assert names["record"]["scores"] == names["records"][0]["scores"]
    assert len(names["records"]) == len(names["cells"])
    assert [path.name for path in tmp_path.iterdir()] == ["records.jsonl"]


@pytest.mark.parametrize(
    ("name", "function"), [("reproduce", "reproduce"), ("data.list", "list_data"), ("data.get", "get_data")]
)
def test_the_commands_are_entry_points(name, function):
    pytest.importorskip("typer")
    from fiedler_papers import command

    (point,) = entry_points(group="fiedler.commands", name=name)
    assert point.load() is getattr(command, function)


def test_records_are_not_added_to_an_installed_package(tmp_path, monkeypatch):
    plan = reproduce.make_plan("smoke", draws=1, out=tmp_path)
    monkeypatch.setattr(reproduce, "INSTALLED_FOLDER", tmp_path)
    plan = replace(plan, protocol=replace(plan.protocol, folder=tmp_path / "smoke"))
    with pytest.raises(InputError, match="records cannot be added to an installed package") as caught:
        reproduce.add_to_archive(plan)
    assert caught.value.code == "archive_read_only"


@pytest.mark.parametrize("command", ["reproduce lapgmm --table 3 --no-run", "data get usps"])
def test_without_this_distribution_its_commands_name_it(command):
    pytest.importorskip("typer")
    code = (
        "import importlib.metadata, sys\n"
        "importlib.metadata.entry_points = lambda **selection: ()\n"
        f"sys.argv = {['fiedler', *command.split()]}\n"
        "from fiedler.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("fiedler: ")
    assert "fiedler-papers" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["reproduce", "list_data", "get_data"])
def test_every_option_of_a_command_is_used(name):
    pytest.importorskip("typer")
    from fiedler_papers import command

    function = getattr(command, name)
    body = inspect.getsource(function).partition(") -> None:")[2]
    assert [name for name in inspect.signature(function).parameters if not re.search(rf"\b{name}\b", body)] == []


def test_baselines_are_saved_and_loaded_in_a_fresh_process(tmp_path):
    X = np.abs(np.random.RandomState(0).normal(size=(20, 4)))
    fiedler.save(fiedler.baselines.NMFClustering(2, random_state=0).fit(X), tmp_path / "model.safetensors")
    code = f"import fiedler; print(type(fiedler.load({str(tmp_path / 'model.safetensors')!r})).__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "fiedler_papers.baselines.nmf\n"


def test_importing_the_distribution_imports_no_heavy_library():
    code = "import sys, fiedler_papers; print([m for m in ('numpy', 'sklearn', 'pooch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

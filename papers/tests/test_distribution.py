"""The distribution: its version, its data and its command."""

import inspect
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import fiedler
import fiedler_papers
from fiedler.errors import InputError
from fiedler_papers import list_protocols, reproduce
from fiedler_papers.protocol import CHECKOUT_FOLDER

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_that_of_the_library():
    assert fiedler_papers.__version__ == fiedler.__version__
    assert PROJECT["project"]["dependencies"] == [f"fiedler[cli,plot]=={fiedler.__version__}"]


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


def test_the_command_is_an_entry_point():
    pytest.importorskip("typer")
    from fiedler_papers.command import reproduce as command

    (point,) = entry_points(group="fiedler.commands", name="reproduce")
    assert point.load() is command


def test_records_are_not_added_to_an_installed_package(tmp_path, monkeypatch):
    plan = reproduce.make_plan("smoke", draws=1, out=tmp_path)
    monkeypatch.setattr(reproduce, "INSTALLED_FOLDER", tmp_path)
    plan = replace(plan, protocol=replace(plan.protocol, folder=tmp_path / "smoke"))
    with pytest.raises(InputError, match="records cannot be added to an installed package") as caught:
        reproduce.add_to_archive(plan)
    assert caught.value.code == "archive_read_only"


def test_without_this_distribution_the_command_names_it():
    pytest.importorskip("typer")
    code = (
        "import importlib.metadata, sys\n"
        "importlib.metadata.entry_points = lambda **selection: ()\n"
        "sys.argv = ['fiedler', 'reproduce', 'lapgmm', '--table', '3', '--no-run']\n"
        "from fiedler.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("fiedler: ")
    assert "fiedler-papers" in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_option_of_the_command_is_used():
    pytest.importorskip("typer")
    from fiedler_papers.command import reproduce as command

    body = inspect.getsource(command).partition(") -> None:")[2]
    assert [name for name in inspect.signature(command).parameters if not re.search(rf"\b{name}\b", body)] == []

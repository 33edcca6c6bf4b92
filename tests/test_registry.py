"""The registry: one row makes an estimator public, storable, checked, documented and a method of the command line."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils.estimator_checks import check_estimator

import fiedler
from fiedler import _registry
from fiedler._registry import Estimator, Method
from fiedler.manifold import choice, views
from registry_instances import check_instances

ROOT = Path(__file__).parents[1]


def stub():
    """What `make stubs` writes."""
    return runpy.run_path(str(ROOT / ".ci" / "write_stub.py"))["stub"]()


def api_reference():
    """The estimators' part of the API reference."""
    return runpy.run_path(str(ROOT / "docs" / "reference.py"))["api_reference"]()


def blocks_of_the_guide():
    """The Python code of the developers' guide: an estimator, its row in the registry, and a view."""
    page = (ROOT / "docs" / "develop.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)


@pytest.fixture
def toy(monkeypatch):
    """The estimator of the developers' guide, registered as the guide says."""
    definition, row, _ = blocks_of_the_guide()
    module = ModuleType("fiedler.clustering.quantiles")
    exec(definition, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(_registry, "ESTIMATORS", dict(_registry.ESTIMATORS))
    names = {"Estimator": Estimator, "Method": Method}
    exec(row, names)
    _registry.register(names["row"])
    return module.QuantileClustering


def test_an_estimator_is_one_row(toy, tmp_path):
    X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 2.0], [5.0, 2.0], [6.0, 2.0]])

    assert fiedler.QuantileClustering is toy
    assert "QuantileClustering" in dir(fiedler)
    assert any(isinstance(one, toy) for one in check_instances())
    assert "QuantileClustering" in stub()
    assert "QuantileClustering" in api_reference()
    fiedler.save(toy().fit(X), tmp_path / "model.safetensors")
    assert fiedler.load(tmp_path / "model.safetensors").predict(X).tolist() == [0, 0, 1, 1, 2, 2]


def test_the_estimator_of_the_guide_passes_the_checks(toy):
    check_estimator(toy(), expected_failed_checks={"check_clustering": "clusters of equal size are not those of blobs"})


def test_the_command_line_offers_it(toy, tmp_path):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from fiedler.cli.app import app

    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,0\n2,1\n3,0\n4,2\n5,2\n6,2\n")
    run = CliRunner().invoke(
        app, ["cluster", str(path), "-k", "3", "--method", "quantiles", "--out", str(tmp_path / "out")]
    )

    assert run.exit_code == 0, run.output
    rows = (tmp_path / "out" / "labels.csv").read_text().splitlines()[1:]
    assert [row.split(",")[1] for row in rows] == list("001122")


def test_the_stub_is_up_to_date():
    """`make stubs` writes it."""
    path = Path(fiedler.__file__).with_name("__init__.pyi")
    assert path.read_text(encoding="utf-8") == stub()


def test_every_public_name_is_visible_and_documented():
    for name in _registry.public_names():
        assert name in dir(fiedler)
        assert "Examples" in getattr(fiedler, name).__doc__
    assert {*_registry.SUBPACKAGES, "cluster"} <= set(dir(fiedler))


def test_modules_of_the_registry_exist():
    for row in _registry.ESTIMATORS.values():
        assert row.load().__name__ == row.name
    classes = _registry.storable_classes()
    for name, module in classes.items():
        assert getattr(__import__(module, fromlist=[name]), name).__name__ == name


def test_documented_submodules_are_reachable_in_a_fresh_process():
    code = "import fiedler; print(fiedler.core.eigen.smallest_eigenpairs.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "smallest_eigenpairs"


def test_importing_is_fast_and_loads_no_heavy_library():
    code = "import sys, fiedler; dir(fiedler); print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"


def test_the_view_of_the_guide_takes_part_in_the_comparison_and_is_saved(monkeypatch, tmp_path, rng):
    monkeypatch.setattr(views, "VIEWS", dict(views.VIEWS))
    monkeypatch.setattr(choice, "VIEWS", views.VIEWS)
    exec(blocks_of_the_guide()[2], {})
    X = rng.normal(size=(90, 4)) * [1, 1, 1, 30] + 4 * np.repeat(np.eye(4)[:3], 30, axis=0)
    model = fiedler.ManifoldClustering(3, effort="thorough", random_state=0).fit(X)

    assert {"rows", *views.VIEWS} - {"LPI", "indicators"} == set(model.candidates_["view"])
    assert "softly whitened" in model.candidates_["view"]
    monkeypatch.setattr(choice, "VIEWS", {"softly whitened": views.VIEWS["softly whitened"]})
    model = fiedler.ManifoldClustering(3, effort="thorough", random_state=0).fit(X)
    fiedler.save(model, tmp_path / "model.safetensors")
    assert_array_equal(fiedler.load(tmp_path / "model.safetensors").predict(X), model.predict(X))

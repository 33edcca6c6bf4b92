"""The registry: one row makes an estimator public, storable, checked, documented and a method of the command line."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin

import fiedler
from fiedler import _registry
from fiedler._registry import Estimator, Method


class SignClustering(ClusterMixin, BaseEstimator):
    """Two clusters, by the sign of the first column."""

    def __init__(self, n_clusters=2, random_state=None):
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X, y=None):
        self.labels_ = (np.asarray(X)[:, 0] > 0).astype(int)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(_registry, "ESTIMATORS", dict(_registry.ESTIMATORS))
    row = Estimator(
        "SignClustering",
        SignClustering.__module__,
        "Clustering",
        checks=({"n_clusters": 2},),
        method=Method("sign", "by the sign of the first column"),
    )
    _registry.register(row)
    return row


def test_an_estimator_is_one_row(toy, tmp_path):
    X = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.0], [3.0, 2.0]])

    assert fiedler.SignClustering is SignClustering
    assert "SignClustering" in dir(fiedler)
    assert any(isinstance(one, SignClustering) for one in _registry.check_instances())
    assert "SignClustering" in _registry.stub()
    assert "SignClustering" in _registry.api_reference()
    fiedler.save(SignClustering().fit(X), tmp_path / "model.npz")
    assert fiedler.load(tmp_path / "model.npz").predict(X).tolist() == [0, 0, 1, 1]


def test_the_command_line_offers_it(toy, tmp_path):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from fiedler.cli.app import app

    path = tmp_path / "rows.csv"
    path.write_text("a,b\n-1,0\n-2,1\n1,0\n3,2\n")
    run = CliRunner().invoke(app, ["cluster", str(path), "-k", "2", "--method", "sign", "--out", str(tmp_path / "out")])

    assert run.exit_code == 0, run.output
    assert [line.split(",")[1] for line in (tmp_path / "out" / "labels.csv").read_text().split()[1:]] == list("0011")


def test_the_stub_is_up_to_date():
    """`make stubs` writes it."""
    path = Path(fiedler.__file__).with_name("__init__.pyi")
    assert path.read_text(encoding="utf-8") == _registry.stub()


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


def test_importing_is_fast_and_loads_no_heavy_library():
    code = "import sys, fiedler; dir(fiedler); print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"

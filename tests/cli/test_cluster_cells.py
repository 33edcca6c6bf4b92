"""Cells of h5ad files on the command line."""

import csv
import json
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from fiedler import AffinityGraph, KNNGraph, ManifoldClustering
from fiedler.io import read_input

ad = pytest.importorskip("anndata")


@pytest.fixture
def write_cells(tmp_path, clouds):
    """Write sixty cells of three types; the rows in X_pca are in another order, so that one can tell what was read."""
    X, y = clouds
    types = pd.Categorical.from_codes(y, ["B cell", "T cell", "monocyte"])
    obs = pd.DataFrame({"type": types, "some": types, "batch": 0.5}, index=[f"cell{i}" for i in range(60)])
    obs.loc[obs.index[::2], "some"] = None
    obs["nothing"] = pd.Categorical([None] * 60, ["a"])

    def write(*, rows=True, pca=True, graph=True):
        adata = ad.AnnData(X.astype(np.float32) if rows else None, obs=obs)
        if pca:
            adata.obsm["X_pca"] = np.ascontiguousarray(X[:, ::-1])
        if graph:
            adata.obsp["connectivities"] = KNNGraph(6, weight="local").build(X).weights
        adata.write_h5ad(tmp_path / "cells.h5ad")
        return tmp_path / "cells.h5ad"

    return write


def test_the_graph_is_read_else_principal_components_else_the_matrix(write_cells, clouds):
    X, _ = clouds
    graph = read_input(write_cells())
    assert (graph.kind, graph.representation, graph.row_names[:2]) == ("graph", "connectivities", ["cell0", "cell1"])
    assert isinstance(graph.X, AffinityGraph)
    assert (graph.X.weights != KNNGraph(6, weight="local").build(X).weights).nnz == 0
    assert read_input(write_cells(), allow_graph=False).representation == "X_pca"
    pca = read_input(write_cells(graph=False))
    assert (pca.kind, pca.representation, pca.row_names) == ("array", "X_pca", graph.row_names)
    assert_array_equal(pca.X, X[:, ::-1])
    assert_array_equal(read_input(write_cells(graph=False, pca=False)).X, X.astype(np.float32))
    assert_array_equal(read_input(write_cells(), use_rep="X").X, X.astype(np.float32))


@pytest.mark.parametrize("method", ["auto", "spectral", "nle"])
def test_cells_are_clustered_by_their_graph_and_compared_with_a_column(method, run_fiedler, write_cells, tmp_path):
    path, out = write_cells(), tmp_path / "out"

    result = run_fiedler("cluster", path, "-k", 3, "--method", method, "--labels", "type", "--out", out, "--json")

    assert result.code == 0, result.err
    assert json.loads(result.out)["scores"]["ARI"] == 1
    with (out / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [f"cell{i}" for i in range(60)]
    assert json.loads((out / "summary.json").read_text())["truth"]["classes"] == ["B cell", "T cell", "monocyte"]
    if method == "auto":
        expected = ManifoldClustering(3, random_state=0).fit(read_input(path).X).labels_
        assert_array_equal([int(row["cluster"]) for row in rows], expected)
    refused = run_fiedler("predict", out, path)
    assert refused.code == 1
    assert "fitted to the graph of its cells" in refused.err
    assert "cluster the cells again with fiedler cluster --use-rep X_pca or X" in refused.err


def test_the_number_of_clusters_of_a_graph_is_chosen(run_fiedler, write_cells, tmp_path):
    for method in ("auto", "spectral"):
        result = run_fiedler("cluster", write_cells(), "--method", method, "--out", tmp_path / "out", "--json")
        assert result.code == 0, result.err
        assert json.loads(result.out)["n_clusters"] == 3


def test_known_types_of_some_cells_guide_the_clusters(run_fiedler, write_cells, tmp_path):
    result = run_fiedler("cluster", write_cells(), "-k", 3, "--labels", "some", "--out", tmp_path / "out")

    assert result.code == 0, result.err
    assert "the known labels of 30 of 60 rows guide the clustering: cluster 0 is 'B cell'" in result.err


def test_new_cells_are_read_like_those_of_the_model(run_fiedler, write_cells, tmp_path):
    out = tmp_path / "out"
    run_fiedler("cluster", write_cells(graph=False), "-k", 3, "--method", "kmeans", "--out", out)

    result = run_fiedler("predict", out, write_cells())  # the graph of the new file is of no use

    assert result.code == 0, result.err
    with (out / "labels.csv").open(newline="") as file:
        fitted = [row["cluster"] for row in csv.DictReader(file)]
    assert [row["cluster"] for row in csv.DictReader(result.out.splitlines())] == fitted


def test_methods_are_compared_on_rows_or_on_the_graph(run_fiedler, write_cells):
    rows = run_fiedler("compare", write_cells(), "-k", 3, "--methods", "gmm,spectral", "--labels", "type", "--json")
    graph = run_fiedler(
        "compare", write_cells(), "-k", 3, "--methods", "spectral", "--use-rep", "connectivities", "--json"
    )

    assert [row["ARI"] for row in json.loads(rows.out)["methods"]] == [1, 1]
    assert all("silhouette" in row for row in json.loads(rows.out)["methods"])
    (spectral,) = json.loads(graph.out)["methods"]
    assert "silhouette" not in spectral
    assert spectral["modularity"] > 0.5


FAULTS = {
    "a method that needs rows": (
        {},
        ["--method", "gmm"],
        "--method gmm needs rows, but the cells are given by their graph; use --use-rep X_pca or X",
    ),
    "a scale of a graph": ({}, ["--scale", "standard"], "--scale standard is for rows"),
    "an id": ({}, ["--id", "type"], "--id is for tables, but 'cells.h5ad' has no named columns; leave --id out"),
    "a column that is not there": (
        {},
        ["--labels", "kind"],
        "'cells.h5ad' has no column 'kind' in obs; its columns are 'type', 'some', 'batch', 'nothing'",
    ),
    "a column without labels": ({}, ["--labels", "nothing"], "column 'nothing' of obs contains no label"),
    "other rows": (
        {},
        ["--use-rep", "X_umap"],
        "there is no 'X_umap' in adata.obsm; choose one of X_pca, X",
    ),
    "nothing to compare": ({"rows": False, "pca": False, "graph": False}, [], "the AnnData object has no X; add X"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_in_one_line(fault, run_fiedler, write_cells, tmp_path):
    parts, arguments, sentence = FAULTS[fault]

    result = run_fiedler("cluster", write_cells(**parts), "-k", 3, *arguments, "--out", tmp_path / "out")

    assert (result.code, result.err.count("\n")) == (1, 1), result.err
    assert sentence in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"no HDF5", b"", b"truncated"])
def test_files_that_cannot_be_read(content, run_fiedler, write_cells, tmp_path):
    path = write_cells()
    path.write_bytes(path.read_bytes()[:3000] if content == b"truncated" else content)

    result = run_fiedler("cluster", path, "-k", 3, "--out", tmp_path / "out")

    assert (result.code, result.err.count("\n")) == (1, 1), result.err
    expected = "'cells.h5ad' cannot be read as an h5ad file (" if content else "'cells.h5ad' is an empty file"
    assert expected in result.err


def test_the_missing_extra_is_named(run_fiedler, write_cells, tmp_path, monkeypatch):
    path = write_cells()
    monkeypatch.setitem(sys.modules, "anndata", None)

    result = run_fiedler("cluster", path, "-k", 3, "--out", tmp_path / "out")

    assert result.code == 1
    assert "h5ad files need 'anndata'; install it with: pip install \"fiedler[anndata]\"" in result.err


def test_rows_of_cells_are_for_cells(run_fiedler, table, tmp_path):
    result = run_fiedler("cluster", table, "-k", 3, "--use-rep", "X", "--out", tmp_path / "out")

    assert "--use-rep is for h5ad files, but 'clouds.csv' is not one of these; leave --use-rep out" in result.err

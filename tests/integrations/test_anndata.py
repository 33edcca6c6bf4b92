"""Cells of AnnData objects, and graphs of other libraries."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fiedler
from fiedler import AffinityGraph, KNNGraph
from fiedler.datasets import blobs
from fiedler.errors import InputError
from fiedler.integrations.anndata import cluster
from fiedler.metrics import adjusted_rand_index

ad = pytest.importorskip("anndata")


@pytest.fixture
def cells():
    X, y = blobs(n_samples=150, n_clusters=3, n_features=4, noise=0.5, random_state=0)
    adata = ad.AnnData(X.astype(np.float32), obs=pd.DataFrame(index=[f"cell{i}" for i in range(150)]))
    adata.obsm["X_pca"] = X
    return adata, y


def test_results_are_written_to_the_object_and_survive_a_file(cells, tmp_path):
    adata, y = cells

    model = cluster(adata, max_clusters=5)

    assert adjusted_rand_index(y, adata.obs["fiedler"].cat.codes) == 1
    assert adata.obs["fiedler"].cat.ordered
    assert_array_equal(adata.obsm["fiedler_memberships"].max(axis=1), adata.obs["fiedler_confidence"])
    adata.write_h5ad(tmp_path / "cells.h5ad")
    loaded = ad.read_h5ad(tmp_path / "cells.h5ad")
    assert_array_equal(loaded.obs["fiedler"].cat.codes, model.labels_)
    assert loaded.uns["fiedler"]["n_clusters"] == 3
    assert_allclose(loaded.uns["fiedler"]["evidence"]["stability"], model.evidence_.stability)


def test_the_graph_of_the_cells_is_used_if_there_is_one(cells):
    adata, _ = cells
    graph = KNNGraph(15, weight="local").build(adata.obsm["X_pca"])
    adata.obsp["connectivities"] = graph.weights

    model = cluster(adata, 3, key_added="groups")

    expected = fiedler.ManifoldClustering(3, random_state=0).fit(AffinityGraph.from_matrix(graph.weights))
    assert_array_equal(model.labels_, expected.labels_)
    assert_array_equal(fiedler.cluster(adata, 3, random_state=0).labels, expected.labels_)
    assert cluster(adata, 3, use_rep="X").n_features_in_ == 4
    with pytest.raises(InputError, match=r"there is no 'X_umap' in adata\.obsm; choose one of \['X_pca'"):
        cluster(adata, 3, use_rep="X_umap")


def test_backed_files(cells, tmp_path):
    adata, y = cells
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")

    for use_rep in (None, "X"):
        cluster(backed, 3, use_rep=use_rep)
        assert adjusted_rand_index(y, backed.obs["fiedler"].cat.codes) == 1


def two_cliques():
    edges = [(i, j) for start in (0, 5) for i in range(start, start + 5) for j in range(i) if j >= start]
    return [*edges, (4, 5)]


@pytest.mark.parametrize("library", ["networkx", "igraph"])
def test_graphs_of_other_libraries(library):
    module = pytest.importorskip(library)
    graph = module.Graph(two_cliques())

    labels = fiedler.cluster(graph, 2, random_state=0).labels

    assert adjusted_rand_index(np.arange(10) < 5, labels) == 1
    directed = module.DiGraph(two_cliques()) if library == "networkx" else module.Graph(two_cliques(), directed=True)
    with pytest.raises(InputError, match=rf"the graph of {library} is directed"):
        fiedler.cluster(directed, 2)


def test_a_sparse_matrix_that_looks_like_a_graph_is_asked_about(rng):
    W = KNNGraph(5).build(rng.normal(size=(40, 2))).weights

    with pytest.raises(InputError, match=r"looks like a graph; pass AffinityGraph\.from_matrix\(X\) if it is one"):
        fiedler.cluster(W, 2)
    assert fiedler.cluster(AffinityGraph.from_matrix(W), 2, random_state=0).labels.shape == (40,)
    features = fiedler.cluster(sp.csr_array(W), 2, graph=KNNGraph(5), random_state=0)
    assert features.labels.shape == (40,)

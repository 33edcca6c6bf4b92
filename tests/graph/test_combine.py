"""Combined Laplacians with weights chosen without labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh

from fiedler import AffinityGraph, KNNGraph, SpectralClustering
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import to_scipy
from fiedler.datasets import blobs
from fiedler.errors import InputError, NotConvergedWarning
from fiedler.graph import combine_graphs
from fiedler.metrics import clustering_accuracy


@pytest.fixture
def views(rng):
    """Three graphs on the same rows: of two noisy views of three clusters, and of noise alone."""
    X, y = blobs(120, n_clusters=3, noise=0.6, random_state=0)
    rows = [X, X + rng.normal(size=X.shape), rng.normal(size=X.shape)]
    return [KNNGraph(8).build(view) for view in rows], rows, y


def scaled_laplacians(graphs):
    return [graph.laplacian().toarray() / graph.degrees.mean() for graph in graphs]


def test_the_laplacian_is_the_weighted_sum(views):
    graphs, _, _ = views

    combined = combine_graphs(graphs, 2)

    printed = sum(mu * L for mu, L in zip(combined.weights, scaled_laplacians(graphs)))
    assert_allclose(combined.graph.laplacian().toarray(), printed, atol=1e-12)
    assert_allclose(combined.weights.sum(), 1)


def test_the_weights_are_a_fixed_point_and_the_objective_never_rises(views):
    """[Nie, Li & Li 2016]: μ_g ∝ 1 / √tr(Y'L_gY), Y the smallest eigenvectors of Σ μ_g L_g."""
    graphs, _, _ = views
    laplacians = scaled_laplacians(graphs)

    combined = combine_graphs(graphs, 2, max_iter=200, tol=1e-10)

    _, Y = eigh(sum(mu * L for mu, L in zip(combined.weights, laplacians)), subset_by_index=(0, 2))
    energies = np.array([np.trace(Y.T @ L @ Y) for L in laplacians])
    assert_allclose(combined.weights, energies**-0.5 / (energies**-0.5).sum(), rtol=1e-6)
    assert len(combined.objectives) > 3
    assert (np.diff(combined.objectives) <= 1e-12).all()


def test_graphs_of_noise_weigh_least_and_clusters_of_the_combination_are_closest(views):
    graphs, rows, y = views
    equal = AffinityGraph.from_matrix(sum(graph.weights / graph.degrees.mean() for graph in graphs))

    combined = combine_graphs(graphs, 2)

    assert combined.weights[0] > combined.weights[1] > combined.weights[2]
    accuracy = [
        clustering_accuracy(y, SpectralClustering(3, graph, random_state=0).fit(rows[1]).labels_)
        for graph in (combined.graph, equal, graphs[1], graphs[2])
    ]
    assert accuracy == sorted(accuracy, reverse=True)
    assert accuracy[0] > accuracy[1]


def test_weights_that_still_change_are_worth_a_warning(views):
    with pytest.warns(
        NotConvergedWarning, match="did not converge within max_iter=2 iterations; raise max_iter or tol"
    ):
        combine_graphs(views[0], 2, max_iter=2)


def test_one_graph_keeps_its_shape_and_back_ends_agree(views, backend):
    graphs, rows, _ = views

    single = combine_graphs(graphs[:1], 2).graph
    foreign = combine_graphs([KNNGraph(8).build(backend(view)) for view in rows], 2)

    assert_allclose(single.weights.toarray() * graphs[0].degrees.mean(), graphs[0].weights.toarray())
    expected = combine_graphs(graphs, 2)
    assert_allclose(foreign.weights, expected.weights, atol=1e-4)
    assert_allclose(to_scipy(foreign.graph.weights).toarray(), expected.graph.weights.toarray(), atol=1e-4)
    assert to_numpy(foreign.graph.degrees).shape == (120,)


def test_graphs_that_cannot_be_combined_are_refused(uneven_graph, connected_graph, signed_graph):
    with pytest.raises(InputError, match="there is no graph to combine"):
        combine_graphs([], 1)
    with pytest.raises(InputError, match="must have the same nodes; they have 6, 10 of them"):
        combine_graphs([uneven_graph, connected_graph], 1)
    with pytest.raises(InputError, match="must not have negative weights"):
        combine_graphs([signed_graph, AffinityGraph.from_matrix(np.ones((8, 8)) - np.eye(8))], 1)

"""What estimators on eigenvectors of a graph promise: recipes, precomputed graphs, new points, convergence."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_clusterer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fiedler import (
    LLGC,
    AffinityGraph,
    FullGraph,
    KNNGraph,
    LapGMM,
    ManifoldClustering,
    RadiusGraph,
    SpectralClustering,
)
from fiedler.core.arrays import to_numpy
from fiedler.graph.community import modularity
from fiedler.graph.recipes import self_tuned
from fiedler.metrics import adjusted_rand_index
from registry_instances import check_instances
from toys import uneven_weights

pytestmark = pytest.mark.filterwarnings("ignore:the graph has . connected components")
ESTIMATORS = list(check_instances("LaplacianEigenmaps", "SpectralClustering"))


def result(model):
    return to_numpy(model.labels_ if is_clusterer(model) else model.embedding_)


def apply(model, X):
    return to_numpy(model.predict(X) if is_clusterer(model) else model.transform(X))


@pytest.fixture(params=ESTIMATORS, ids=repr)
def estimator(request):
    return clone(request.param).set_params(random_state=0)


@pytest.fixture
def X(rng):
    return np.repeat(4 * np.eye(5)[:3], 40, axis=0) + rng.normal(size=(120, 5))


def test_sparse_rows_give_what_dense_rows_give(estimator, X):
    X = np.where(np.abs(X) > 0.5, X, 0)
    dense, sparse = clone(estimator).fit(X), clone(estimator).fit(sp.csr_array(X))

    assert_allclose(result(sparse), result(dense), atol=1e-6)
    assert_allclose(apply(sparse, sp.csr_matrix(X[:9] + 0.1)), apply(dense, X[:9] + 0.1), atol=1e-6)


def test_graph_options_are_nested_parameters(estimator, X):
    model = clone(estimator).set_params(graph__n_neighbors=5, graph__weight="heat")

    assert (model.graph.n_neighbors, model.graph.weight) == (5, "heat")
    assert_array_equal(
        result(model.fit(X)), result(clone(estimator).set_params(graph=KNNGraph(5, weight="heat")).fit(X))
    )


def test_grid_search_over_the_graph(estimator, X):
    """Scored by its own number of edges, the graph with the most neighbours must win."""

    def edges(model, X, y=None):
        return model.graph_.n_edges

    search = GridSearchCV(estimator, {"graph__n_neighbors": [5, 10, 7]}, scoring=edges, cv=KFold(2))

    assert search.fit(X).best_params_ == {"graph__n_neighbors": 10}


def test_a_grid_search_without_labels_uses_the_score(X):
    """As the README shows it: the score is the modularity on one graph, whatever the model's own."""
    search = GridSearchCV(SpectralClustering(3, random_state=0), {"graph__n_neighbors": [5, 10]}, cv=KFold(2)).fit(X)

    expected = modularity(self_tuned().build(X), search.best_estimator_.predict(X))
    assert search.score(X) == pytest.approx(expected)
    assert set(search.best_params_) == {"graph__n_neighbors"}


def test_pipelines_and_data_frames(estimator, X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).set_output(transform="pandas")

    pipeline.fit(frame)

    assert list(pipeline[0].feature_names_in_) == list("abcde")
    assert apply(pipeline, frame).shape[0] == 120


def test_precomputed_matrices_and_graphs(estimator, X):
    graph = KNNGraph(8).build(X)
    expected = result(clone(estimator).fit(X))

    for model in (
        clone(estimator).set_params(graph="precomputed").fit(graph.weights),
        clone(estimator).set_params(graph=graph).fit(X),
        clone(estimator).set_params(graph=graph.weights.toarray()).fit(X),
        clone(estimator).fit(graph),
    ):
        assert_array_equal(result(model), expected)
        assert model.graph_.n_edges == graph.n_edges


def test_new_points_need_a_recipe(estimator, X):
    with pytest.raises(ValueError, match="fitted on a graph, not on rows"):
        apply(clone(estimator).fit(KNNGraph(8).build(X)), X)
    with pytest.raises(ValueError, match="new points need a recipe to be joined to the graph"):
        apply(clone(estimator).set_params(graph=KNNGraph(8).build(X)).fit(X), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_torch_fits_and_predicts_without_leaving_torch(estimator, X, dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = X.astype(dtype)
    reference = clone(estimator).fit(X)

    model = clone(estimator).fit(torch.asarray(X))
    new = model.predict(torch.asarray(X + 0.1)) if is_clusterer(model) else model.transform(torch.asarray(X + 0.1))

    assert isinstance(new, torch.Tensor)
    assert model.embedding_.dtype == getattr(torch, np.dtype(dtype).name)
    if is_clusterer(model):
        assert adjusted_rand_index(model.labels_, reference.labels_) == 1
        assert adjusted_rand_index(new, reference.predict(X + 0.1)) == 1
    else:
        tol = 2e-3 if dtype == np.float32 else 1e-6
        assert_allclose(to_numpy(model.embedding_), reference.embedding_, atol=tol)
        assert_allclose(to_numpy(new), reference.transform(X + 0.1), atol=tol)


@pytest.mark.parametrize(
    "recipe", [KNNGraph(8), RadiusGraph(4.0), FullGraph("heat", bandwidth=1.5)], ids=lambda r: type(r).__name__
)
def test_every_recipe_places_new_points_on_every_back_end(estimator, recipe, X, backend):
    model = clone(estimator).set_params(graph=recipe)
    expected = apply(clone(model).fit(X), X + 0.1)

    result = apply(clone(model).fit(backend(X)), backend(X + 0.1))

    if is_clusterer(model):
        assert adjusted_rand_index(result, expected) == 1
    else:
        assert_allclose(result, expected, atol=1e-6)


def test_new_points_may_come_in_another_container(estimator, X, foreign):
    X = np.where(np.abs(X) > 0.5, X, 0)
    dense, sparse = clone(estimator).fit(X), clone(estimator).fit(sp.csr_array(X))
    expected = apply(dense, X[:9] + 0.1)

    for model, new in ((dense, sp.csr_array(X[:9] + 0.1)), (sparse, X[:9] + 0.1), (dense, foreign(X[:9] + 0.1))):
        assert_allclose(apply(model, new), expected, atol=1e-6)
    own = clone(estimator).fit(foreign(X))
    assert_array_equal(apply(own, X[:9] + 0.1), apply(own, foreign(X[:9] + 0.1)))


def test_parameters_set_after_fit_are_for_the_next_fit(estimator, X):
    model = clone(estimator).set_params(graph=KNNGraph(8)).fit(X)
    expected = apply(model, X + 0.1)

    model.set_params(graph__weight="heat", graph__n_neighbors=3)
    if is_clusterer(model):
        model.set_params(cut="nonsense")

    assert_array_equal(apply(model, X + 0.1), expected)


def test_a_disconnected_graph_is_reported_with_a_remedy(estimator):
    with pytest.warns(UserWarning, match=r"3 connected components \(sizes 6, 3, 1\).*KNNGraph\(connect='mst'\)"):
        model = clone(estimator).fit(AffinityGraph.from_matrix(uneven_weights()))
    assert model.n_connected_components_ == 3


def test_residuals_and_convergence_are_reported(estimator, X):
    model = clone(estimator).fit(X)

    assert model.converged_
    assert (model.eigen_residuals_ < 1e-8).all()
    assert (np.diff(model.eigenvalues_) >= 0).all()


def test_a_signed_graph_is_accepted(estimator, signed_graph):
    with pytest.warns(UserWarning, match="connected components"):
        fitted = clone(estimator).set_params(**({"n_clusters": 2} if is_clusterer(estimator) else {})).fit(signed_graph)

    assert np.isfinite(result(fitted)).all()


@pytest.mark.parametrize("shape", [(5, 5), (8, 5)])
def test_too_few_rows_for_the_graph_is_one_sentence(estimator, shape):
    with pytest.raises(ValueError, match=r"n_neighbors=8 needs more rows than there are \(n_samples="):
        clone(estimator).fit(np.random.RandomState(0).normal(size=shape))


@pytest.mark.parametrize("recipe", [FullGraph("dot"), FullGraph("cosine"), KNNGraph(5, weight="dot")], ids=str)
@pytest.mark.parametrize(
    "probabilities",
    [
        lambda graph, X, y: ManifoldClustering(3, graph=graph, random_state=0).fit(X).predict_proba,
        lambda graph, X, y: LLGC(graph, alpha=0.9).fit(X, y).predict_proba,
        lambda graph, X, y: partial(LapGMM(3, graph=graph, random_state=0).fit(X).predict_proba, use_graph=True),
    ],
    ids=["ManifoldClustering", "LLGC", "LapGMM"],
)
@pytest.mark.filterwarnings("ignore")
def test_probabilities_of_points_with_negative_similarities_are_probabilities(recipe, probabilities, rng):
    """Inner products with rows that are all positive are negative for a point on the other side."""
    y = np.repeat([0, 1, 2], 20)
    X = np.abs(4 * np.eye(3)[y] + rng.normal(size=(60, 3)))
    predict_proba = probabilities(recipe, X, np.where(np.arange(60) % 4 == 0, y, -1))

    proba = predict_proba(np.array([[-1.0, 0.4, 0.2], [-1, -1, -1], [0.5, 0.5, 0.4]]))

    assert (proba >= 0).all()
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)

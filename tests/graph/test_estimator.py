"""What estimators with a ``graph`` parameter share: one validation per fit, recipes that stay as given, failed fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClusterMixin

import fiedler._validation as validation
from fiedler import (
    AffinityGraph,
    FullGraph,
    KNNGraph,
    LabelGraph,
    LandmarkGraph,
    LapGMM,
    LearnedLaplacian,
    RadiusGraph,
    SpectralClustering,
)
from fiedler.core.fitting import restore_on_failure
from fiedler.errors import FiedlerWarning, InputError
from fiedler.graph import as_affinity
from fiedler.graph.constraints import PairwiseConstraints, check_constraints
from fiedler.graph.estimator import GraphEstimatorMixin
from fiedler.graph.recipes import link_new_points, nested_graphs
from fiedler.graph.smoothing import replace_coincident_rows

RECIPES = [KNNGraph(6), RadiusGraph(3.0), FullGraph(bandwidth=1.0), KNNGraph(2, connect="mst"), LabelGraph(KNNGraph(6))]


@pytest.fixture
def points(rng):
    return rng.normal(size=(60, 3))


@pytest.fixture
def validations(monkeypatch):
    """The names of the validating functions, one entry per call."""
    calls = []
    for name in ("validate_data", "check_array", "_check_foreign"):
        original = getattr(validation, name)

        def counted(*args, _name=name, _original=original, **options):
            calls.append(_name)
            return _original(*args, **options)

        monkeypatch.setattr(validation, name, counted)
    return calls


class ToyClusterer(GraphEstimatorMixin, ClusterMixin, BaseEstimator):
    """Labels rows by the connected components of their graph."""

    def __init__(self, graph=None, fail=False):
        self.graph = graph
        self.fail = fail

    def fit(self, X, y=None, *, constraints=None):
        with restore_on_failure(self):
            self.graph_ = self._build_graph(X, y, check_constraints(constraints, X))
            self.labels_ = self.graph_.components()[1]
            if self.fail:
                raise RuntimeError("the fit failed")
        return self


class LearningRecipe(BaseEstimator):
    """A recipe that is fitted when it builds a graph."""

    uses_labels = uses_constraints = True

    def __init__(self, n_neighbors=6):
        self.n_neighbors = n_neighbors

    def build(self, X, y=None, constraints=None):
        self.mean_ = X.mean(axis=0)
        return KNNGraph(self.n_neighbors).build(X)

    def link(self, X_new, X, graph):
        return KNNGraph(self.n_neighbors).link(X_new - self.mean_, X - self.mean_, graph)


# --------------------------------------------------------------------------------------------------- validation, once


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
def test_as_affinity_validates_rows_once_or_not_at_all(recipe, points, validations, backend):
    X, y = backend(points), np.zeros(60, dtype=int)
    graph = as_affinity(recipe, X, y)
    assert len(validations) == 1
    validations.clear()

    validated = as_affinity(recipe, X, y, validated=True)

    assert validations == []
    assert validated.n_edges == graph.n_edges


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
def test_build_and_link_validate_and_linking_of_validated_rows_does_not(recipe, points, validations):
    y = np.zeros(60, dtype=int)
    graph = recipe.build(points, y) if isinstance(recipe, LabelGraph) else recipe.build(points)
    assert len(validations) == 1
    with pytest.raises(ValueError, match="NaN"):
        recipe.link(np.full((2, 3), np.nan), points, graph)
    validations.clear()

    link_new_points(recipe, points[:5], points, graph)

    assert validations == []


def test_helpers_do_not_validate_rows_again(points, validations):
    nested_graphs(KNNGraph(6), points, [3, 6])
    LandmarkGraph(20)._build(points)
    check_constraints(PairwiseConstraints([(0, 1)], [], 60), points)
    check_constraints(PairwiseConstraints([(0, 1)], [], 60), points.tolist())
    assert validations == []
    LandmarkGraph(20).build(points)
    assert len(validations) == 1


@pytest.mark.parametrize("recipe", [None, KNNGraph(6), LabelGraph(KNNGraph(6)), KNNGraph(6).build(np.eye(60, 3))])
def test_an_estimator_validates_rows_once_per_fit(recipe, points, validations):
    pairs = PairwiseConstraints([(0, 1)], [(2, 3)], 60)

    ToyClusterer(recipe).fit(points, np.arange(60) % 2, constraints=pairs)

    assert validations == ["validate_data"]


def test_an_overridden_build_is_not_bypassed(points):
    class Doubled(KNNGraph):
        def build(self, X):
            graph = super().build(X)
            return graph._with_weights(2 * graph.weights)

    assert as_affinity(Doubled(6), points, validated=True).degrees.sum() == 2 * KNNGraph(6).build(points).degrees.sum()


# ------------------------------------------------------------------------------------------------ recipes that learn


def test_a_recipe_that_learns_is_cloned_and_its_clone_links_new_points(points):
    recipe = LearningRecipe()

    model = ToyClusterer(recipe).fit(points)

    assert vars(recipe) == {"n_neighbors": 6}
    assert_allclose(model._fit_recipe.mean_, points.mean(axis=0))
    weights, _ = model._links_to(points[:4] + 0.1, np.ones((60, 1)))
    assert weights.shape == (4, 60)
    as_affinity(recipe, points)
    assert vars(recipe) == {"n_neighbors": 6}


@pytest.mark.parametrize("kind", [SpectralClustering, LapGMM])
def test_a_learned_laplacian_given_as_a_parameter_is_not_fitted(kind, rng):
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2)) + 4 * y[:, None]
    recipe = LearnedLaplacian(max_iter=3, random_state=0)
    before = dict(vars(recipe))

    model = kind(2, recipe, random_state=0).fit(X, constraints=PairwiseConstraints([(0, 1)], [(0, 59)], 60))

    assert model.graph is recipe
    assert vars(recipe) == before
    assert len(model.predict(X[:5] + 0.01)) == 5
    assert model._fit_recipe is not recipe


def test_a_later_set_params_is_for_the_next_fit(points):
    model = ToyClusterer(KNNGraph(6)).fit(points)
    model.set_params(graph__n_neighbors=3)
    assert model._fit_recipe.n_neighbors == 6


# -------------------------------------------------------------------------------------------------------- failed fits


def test_a_failed_fit_leaves_the_model_as_it_was(points):
    model = ToyClusterer(KNNGraph(6)).fit(points)
    before = dict(vars(model.set_params(fail=True)))

    with pytest.raises(RuntimeError, match="the fit failed"):
        model.fit(points[:30, :2])

    assert vars(model) == before
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((30, 2), np.nan))
    assert vars(model) == before


def test_a_first_fit_that_fails_leaves_no_attribute(points):
    model = ToyClusterer(KNNGraph(6), fail=True)
    with pytest.raises(RuntimeError):
        model.fit(points)
    assert set(vars(model)) == {"graph", "fail"}


# ----------------------------------------------------------------------------------------------- warnings, new points


def test_a_disconnected_graph_warns_with_its_number_of_components(points):
    two = np.concatenate([points, points + 100])
    with pytest.warns(FiedlerWarning, match=r"2 connected components \(sizes 60, 60\)") as caught:
        ToyClusterer(KNNGraph(30)).fit(two)
    assert caught[0].message.code == "disconnected_graph"
    assert caught[0].message.fields["n_components"] == 2
    assert caught[0].filename.endswith("test_estimator.py")


def test_an_unlinked_new_point_takes_the_nearest_row_with_a_warning(points):
    recipe, F = RadiusGraph(2.0), np.arange(60.0)[:, None]
    graph = recipe.build(points)
    X_new = np.concatenate([points[:2], 50 + points[:1]])
    W = recipe.link(X_new, points, graph)

    with pytest.warns(FiedlerWarning, match="no weight to any row") as caught:
        extended = replace_coincident_rows(np.full((3, 1), -1.0), F, W, np.array([False, False, True]), X_new, points)

    nearest = np.argmin(np.linalg.norm(points - X_new[2], axis=1))
    assert extended.ravel().tolist() == [0, 1, nearest]
    assert caught[0].message.code == "no_weight_to_graph"
    assert caught[0].message.fields["n_points"] == 1


def test_a_graph_has_no_place_for_new_points(points):
    graph = AffinityGraph.from_matrix(np.ones((60, 60)))
    model = ToyClusterer().fit(graph)
    with pytest.raises(InputError, match="was fitted on a graph") as caught:
        model._check_new_points(points)
    assert caught.value.code == "no_training_rows"
    with pytest.raises(InputError, match="given ready-made"):
        link_new_points(graph, points, points, graph)

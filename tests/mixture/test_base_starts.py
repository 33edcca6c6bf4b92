"""Starts, the search for λ, sampling and prediction from neighbours: shared by the mixtures beyond EM."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fiedler import LCGMM, GaussianMixture, KNNGraph, LapGMM
from fiedler.core.arrays import to_numpy
from fiedler.datasets import blobs, circles, load, two_moons
from fiedler.errors import InputError
from fiedler.graph import communities
from fiedler.graph.community import RESOLUTION
from fiedler.metrics import clustering_accuracy, modularity
from fiedler.mixture.base import natural_lam, partition_quality
from fiedler.mixture.covariance import SHAPES, log_joint
from fiedler.mixture.lapgmm import LAM_GRIDS, LAM_TRIAL_ITERATIONS

SETS = {
    "moons": lambda: two_moons(n_samples=300, noise=0.06, random_state=0),
    "circles": lambda: circles(n_samples=300, noise=0.03, random_state=0),
    "blobs": lambda: blobs(n_samples=300, n_clusters=3, noise=0.5, random_state=0),
    "digits": lambda: (lambda data: (data.X, data.y))(load("digits", classes=4, normalize="unit")),
    "iris": lambda: (lambda data: (data.X, data.y))(load("iris", normalize="standard")),
}


@pytest.mark.filterwarnings("ignore:EM did not converge", "ignore:only .* clusters")
@pytest.mark.parametrize("name", list(SETS))
def test_the_selected_lam_has_the_highest_modularity_of_the_grid(name):
    X, y = SETS[name]()
    k = len(np.unique(y))
    graph = KNNGraph(9, weight="local", symmetrize="mean").build(X)
    labels = communities(graph, k, random_state=0).labels
    selected = LapGMM(k, graph, init=labels, max_iter=LAM_TRIAL_ITERATIONS).fit(X)

    plain = GaussianMixture(k, init=labels, max_iter=1).fit(X)
    scale = natural_lam(log_joint(X, plain._model), graph)
    models = [
        LapGMM(k, graph, lam=factor * scale, init=labels, max_iter=LAM_TRIAL_ITERATIONS).fit(X)
        for factor in LAM_GRIDS["auto"]
    ]

    assert_allclose(min(abs(np.log(selected.lam_ / (factor * scale))) for factor in LAM_GRIDS["auto"]), 0, atol=1e-6)
    best = max(partition_quality(model.memberships_, graph) for model in models)
    assert partition_quality(selected.memberships_, graph)[1] >= best[1] - 1e-4
    assert name == "iris" or clustering_accuracy(y, selected.labels_) > 0.95  # two of its three species overlap


def test_the_natural_scale_is_where_neighbours_weigh_as_much_as_densities(rng):
    """Half the difference of the log-densities over the mean degree."""
    joint = np.tile([[0.0, -6.0]], (5, 1))
    graph = KNNGraph(2).build(rng.normal(size=(20, 2)))

    assert_allclose(natural_lam(joint, graph), 6.0 / (2 * graph.degrees.mean()))
    assert natural_lam(joint[:, :1], graph) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_moons_are_separated_by_the_graph_and_not_by_densities(noise):
    for seed in range(10):
        X, y = two_moons(n_samples=1000, noise=noise, random_state=seed)

        assert clustering_accuracy(y, LapGMM(2, random_state=seed).fit(X).labels_) >= 0.99
        assert clustering_accuracy(y, GaussianMixture(2, random_state=seed).fit(X).labels_) < 0.95


@pytest.mark.parametrize("model", [GaussianMixture, LapGMM, LCGMM])
@pytest.mark.parametrize("init", ["kmeans", "community", "auto"])
@pytest.mark.parametrize("names", [(0, 1, 2), (1, 2, 0), (2, 1, 0)])
def test_clusters_have_the_numbers_of_the_known_rows(model, init, names):
    X, y = SETS["blobs"]()
    y = np.asarray(names)[y]
    partial = np.where(np.arange(len(y)) % 50 == 0, y, -1)

    assert np.mean(model(3, init=init, random_state=0).fit_predict(X, partial) == y) > 0.9


def test_starts_with_different_lam_are_compared_by_modularity():
    X, _ = two_moons(n_samples=300, noise=0.1, random_state=0)
    several = LapGMM(2, init="random", n_init=3, random_state=0).fit(X)

    def reached(model):
        return modularity(model.graph_, model.labels_, resolution=RESOLUTION)

    assert reached(several) >= reached(LapGMM(2, init="random", n_init=1, random_state=0).fit(X)) - 1e-9


def test_one_value_of_lam_that_fails_does_not_stop_the_search():
    X = np.random.RandomState(7).normal(size=(80, 2))
    model = LapGMM(8, init="kmeans", ridge=0.0, random_state=0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(model.fit(X).history_.objective) > 0


@pytest.mark.parametrize("model", [LapGMM, LCGMM])
def test_memberships_have_the_precision_of_the_rows(model):
    X, _ = SETS["blobs"]()
    graph = KNNGraph(5).build(X)

    assert model(3, graph, random_state=0).fit(X.astype(np.float32)).memberships_.dtype == np.float32


def test_affinities_without_rows_are_rejected():
    X, _ = SETS["blobs"]()
    graph = KNNGraph(5).build(X)

    with pytest.raises(ValueError, match="densities need the rows themselves, not their affinities; fit on data"):
        LapGMM(3).fit(graph)
    with pytest.raises(ValueError, match="densities need the rows themselves, not their affinities; fit on data"):
        LapGMM(3, graph="precomputed").fit(graph.weights.toarray())


@pytest.mark.parametrize(
    ("init", "sentence"),
    [
        (np.full((300, 3), "a"), "got entries of type <U1"),
        ([[0.1], [0.2, 0.8]], "its rows differ in length"),
        (np.full(300, 7), "got an array of shape"),
    ],
)
def test_an_invalid_start_raises_an_error(init, sentence):
    with pytest.raises(ValueError, match=sentence):
        GaussianMixture(3, init=init).fit(SETS["blobs"]()[0])


@pytest.mark.parametrize("model", [GaussianMixture, LapGMM, LCGMM])
@pytest.mark.parametrize("init", ["community", "auto"])
def test_starts_from_the_graph_work_for_every_model(model, init):
    X, y = SETS["blobs"]()
    fitted = model(3, init=init, random_state=0).fit(X)

    assert fitted.graph_ is not None
    assert clustering_accuracy(y, fitted.labels_) > 0.95


def test_auto_selects_the_partition_of_highest_modularity():
    X, _ = SETS["digits"]()
    options = {"lam": 5.0, "random_state": 0}
    auto = LapGMM(4, init="auto", **options).fit(X)
    reached = modularity(auto.graph_, auto.labels_, resolution=RESOLUTION)

    for init in ("community", "spectral", "kmeans"):
        other = LapGMM(4, init=init, **options).fit(X)
        slack = 1e-9 if init == "community" else 1e-3  # the others draw other numbers
        assert reached >= modularity(other.graph_, other.labels_, resolution=RESOLUTION) - slack


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("kind", list(SHAPES))
def test_samples_have_the_moments_of_the_components(kind):
    X, _ = SETS["blobs"]()
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    drawn, labels = model.sample(20_000)

    assert drawn.shape == (20_000, 2)
    assert drawn.dtype == X.dtype
    assert_allclose(np.bincount(labels) / 20_000, model.weights_, atol=0.02)
    means = [drawn[labels == c].mean(axis=0) for c in range(3)]
    assert_allclose(means, model.means_, atol=0.1)
    again = GaussianMixture(3, covariance_type=kind, ridge=0.0, init=labels, max_iter=1).fit(drawn)
    assert_allclose(again.covariances_, model.covariances_, atol=0.1)


def test_samples_lie_in_the_plane_of_the_components(backend):
    data = load("iris").X
    model = GaussianMixture(2, pca=2, random_state=0).fit(backend(data))
    drawn, _ = model.sample(50)

    centered = to_numpy(drawn) - data.mean(axis=0)
    assert np.linalg.matrix_rank(centered, tol=1e-6) == 2


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("model", [GaussianMixture, LapGMM, LCGMM])
def test_every_model_can_predict_from_neighbours(model, backend):
    X, y = two_moons(n_samples=500, noise=0.05, random_state=0)
    fitted, new = model(2, ridge=0.1, init=y[::2], max_iter=1, random_state=0).fit(backend(X[::2])), backend(X[1::2])
    by_density, by_both = (to_numpy(fitted.predict_proba(new, use_graph=use)) for use in (False, True))

    assert_allclose(by_both.sum(axis=1), 1, rtol=1e-6)
    assert np.mean(by_both.argmax(axis=1) == y[1::2]) >= np.mean(by_density.argmax(axis=1) == y[1::2])
    assert np.abs(by_density - by_both).max() > 1e-3


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_a_grid_search_over_lam_and_neighbours():
    X, _ = SETS["iris"]()
    grid = {"lam": [0.1, 1.0], "graph__n_neighbors": [5, 8]}
    search = GridSearchCV(LapGMM(3, init="kmeans", random_state=0), grid, cv=KFold(2, shuffle=True, random_state=0))

    assert search.fit(X).best_params_.keys() == grid.keys()
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    labels = make_pipeline(StandardScaler(), LapGMM(3, random_state=0)).fit_predict(X)
    assert len(set(labels)) == 3


def test_verbose_prints_a_line_per_iteration(capsys):
    X, _ = SETS["blobs"]()
    model = LapGMM(3, lam=1.0, verbose=True, random_state=0).fit(X)

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert lines[0].startswith("LapGMM: iteration 1, objective ")


def test_the_natural_lam_is_used_unchanged():
    X, y = two_moons(200, noise=0.1, random_state=0)
    graph = KNNGraph(8).build(X)
    natural = LapGMM(2, graph, lam="natural", init=y, max_iter=20).fit(X)
    first = LapGMM(2, graph, lam=0.0, init=y, max_iter=1).fit(X)

    scale = natural_lam(log_joint(X, first._model), graph)

    assert_allclose(natural.lam_, scale, rtol=1e-6)
    fixed = LapGMM(2, graph, lam=natural.lam_, init=y, max_iter=20).fit(X)
    assert_allclose(natural.memberships_, fixed.memberships_)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_nmf_starts_from_the_largest_coefficient(form, monkeypatch):
    """Of the rows as given, not of their principal components, which have negative entries."""
    rng = np.random.RandomState(0)
    parts = np.kron(np.eye(3), np.ones((30, 4)))  # three groups of rows with columns of their own
    X = parts * rng.uniform(0.5, 1.5, size=parts.shape)
    starts, run = [], GaussianMixture._run
    monkeypatch.setattr(
        GaussianMixture, "_run", lambda self, start, hooks: starts.append(start) or run(self, start, hooks)
    )

    model = GaussianMixture(3, init="nmf", pca=3, random_state=0).fit(form(X))

    assert clustering_accuracy(np.repeat([0, 1, 2], 30), starts[0].argmax(axis=1)) == 1
    assert clustering_accuracy(np.repeat([0, 1, 2], 30), model.labels_) == 1


def test_nmf_needs_rows_without_negative_entries():
    X, _ = blobs(n_samples=30, random_state=0)

    with pytest.raises(InputError, match=r"init='nmf' needs rows without negative entries; the smallest is -\S+; use"):
        GaussianMixture(3, init="nmf").fit(X)

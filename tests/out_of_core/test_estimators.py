"""KNNGraph, SpectralClustering and LLGC on Dask arrays, compared with those in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import fiedler
from fiedler import GaussianMixture, KNNGraph, LapGMM, ManifoldClustering, RadiusGraph, SpectralClustering
from fiedler.datasets import tanh_manifold
from fiedler.errors import FiedlerWarning, InputError
from fiedler.metrics import adjusted_rand_index
from fiedler.out_of_core import config_context, spectral
from fiedler.supervision import LLGC

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def rows():
    return tanh_manifold(1500, n_clusters=5, ambient=20, random_state=0)


@pytest.fixture
def few(rows):
    """A label for one row of twenty."""
    return np.where(np.arange(1500) % 20 == 0, rows[1], -1)


def in_blocks(X, n_blocks=5):
    return da.from_array(X, chunks=(-(-len(X) // n_blocks), *X.shape[1:]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [
        KNNGraph(6),
        KNNGraph(6, symmetrize="mutual"),
        KNNGraph(7, weight="local", symmetrize="mean", metric="cosine"),
        KNNGraph(6, weight="heat", bandwidth=2.0),
    ],
)
def test_graphs_have_nearly_the_weights_of_those_in_memory(recipe, rows, client):
    X, _ = rows

    graph = recipe.build(in_blocks(X))

    assert graph.n_nodes == 1500
    assert graph.weights.chunks == ((300,) * 5, (1500,))

    weights = sp.vstack([graph.weights.blocks[block, 0].compute() for block in range(5)]).tocsr()
    expected = recipe.build(X).weights
    assert abs(weights - weights.T).max() < 1e-12
    assert abs(weights - expected).sum() < 0.05 * expected.sum()


def test_the_default_bandwidth_is_nearly_the_median_distance(rows, client):
    X, _ = rows

    graph = KNNGraph(6, weight="heat").build(in_blocks(X))

    total = sum(graph.weights.blocks[block, 0].compute().sum() for block in range(5))
    assert_allclose(total, KNNGraph(6, weight="heat").build(X).weights.sum(), rtol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["ncut", "njw"])
def test_spectral_clusters_are_those_in_memory(cut, rows, client, monkeypatch, tmp_path):
    X, _ = rows
    monkeypatch.setattr(spectral, "MAX_NODES", 500)
    options = {"graph": KNNGraph(10), "cut": cut, "random_state": 0}

    model = SpectralClustering(5, **options).fit(in_blocks(X))

    reference = SpectralClustering(5, **options).fit(X)
    labels = model.labels_.compute()
    assert model.converged_
    assert_allclose(model.eigenvalues_, reference.eigenvalues_, atol=2e-3)
    assert adjusted_rand_index(labels, reference.labels_) > 0.97
    assert (model.labels_.chunks, model.embedding_.chunks) == (((300,) * 5,), ((300,) * 5, (5,)))
    assert np.mean(model.predict(in_blocks(X, 2)).compute() == labels) > 0.97
    fiedler.save(model, tmp_path / "model.safetensors")
    assert_array_equal(fiedler.load(tmp_path / "model.safetensors").predict(X[:9]), model.predict(X[:9]))


def test_eigenvectors_that_do_not_converge_are_reported(rows, client, monkeypatch):
    X, _ = rows
    monkeypatch.setattr(spectral, "MAX_NODES", 200)

    with pytest.warns(FiedlerWarning, match="eigenvectors did not converge"):
        model = SpectralClustering(5, graph=KNNGraph(10), eigen_max_iter=1, random_state=0).fit(in_blocks(X))

    assert not model.converged_


@pytest.mark.slow
@pytest.mark.parametrize("normalize", ["cmn", None])
def test_labels_spread_as_in_memory(normalize, rows, few, client, tmp_path):
    X, _ = rows

    model = LLGC(alpha=0.9, normalize=normalize).fit(in_blocks(X), in_blocks(few))

    reference = LLGC(alpha=0.9, normalize=normalize).fit(X, few)
    found = model.transduction_.compute()
    assert np.mean(found == reference.transduction_) > 0.99
    assert_allclose(model.label_distributions_.compute().sum(axis=1), 1)
    assert np.median(np.abs(model.label_distributions_.compute() - reference.label_distributions_)) < 0.02
    assert_array_equal(model.classes_, reference.classes_)
    fiedler.save(model, tmp_path / "model.safetensors")
    loaded = fiedler.load(tmp_path / "model.safetensors")
    assert np.mean(loaded.predict(in_blocks(X, 2)).compute() == found) > 0.99
    assert loaded.predict_proba(in_blocks(X, 2)).shape == (1500, 5)


@pytest.mark.slow
def test_names_of_classes_and_rows_that_no_label_reaches(client, rng):
    X = np.concatenate([rng.normal(size=(1000, 2)), rng.normal(size=(1000, 2)) + 100])
    names = np.full(2000, "-1", dtype="<U8")
    names[:10] = "near"

    with pytest.warns(FiedlerWarning, match=r"no label reaches 1000 row\(s\)"):
        model = LLGC(alpha=0.9).fit(in_blocks(X, 4), names)

    assert_array_equal(model.transduction_.compute(), ["near"] * 1000 + ["-1"] * 1000)
    assert_array_equal(model.predict(in_blocks(X[:2], 1)).compute(), ["near"] * 2)


def test_mistakes_give_one_sentence(rows, few, client):
    X, _ = rows
    blocks = in_blocks(X)
    for call, sentence in (
        (lambda: KNNGraph(weight="cosine").build(blocks), r"KNNGraph\(weight='cosine'\) does not work with Dask"),
        (lambda: KNNGraph(connect="mst").build(blocks), r"KNNGraph\(connect='mst'\) does not work with Dask"),
        (lambda: KNNGraph(5000).build(blocks), "n_neighbors=5000 needs more rows than there are"),
        (lambda: RadiusGraph().build(blocks), r"RadiusGraph\.build does not take Dask arrays"),
        (lambda: SpectralClustering(graph=RadiusGraph()).fit(blocks), "the graph must be a KNNGraph"),
        (lambda: SpectralClustering(cut="ratio").fit(blocks), "cut='ratio' does not work with Dask arrays"),
        (lambda: SpectralClustering().fit(blocks, constraints=0), "does not take constraints with Dask arrays"),
        (lambda: SpectralClustering().fit(blocks, sample_weight=0), "does not take sample_weight with Dask arrays"),
        (lambda: LLGC().fit(blocks, few, constraints=0), "does not take constraints with Dask arrays"),
        (lambda: LLGC().fit(blocks, None), "LLGC requires y to be passed"),
        (lambda: LLGC().fit(blocks, few[:10]), "y must have one value for each of the 1500 rows of X"),
        (lambda: LLGC().fit(blocks, np.full(1500, -1)), "y contains no label, only -1"),
        (lambda: LLGC(alpha=1.0).fit(blocks, few), "alpha must be between 0 and 1"),
    ):
        with pytest.raises(InputError, match=sentence):
            call()


def test_one_block_of_lapgmm_has_the_iterations_in_memory(rows, client, rng):
    X, y = rows
    X, y = X[:900], y[:900]
    start = np.where(rng.uniform(size=900) < 0.2, rng.randint(5, size=900), y)
    options = {"graph": KNNGraph(9, weight="local", symmetrize="mean"), "init": start, "lam": 0.3, "pca": 4}

    model = LapGMM(5, **options).fit(in_blocks(X, 2))

    reference = LapGMM(5, **options).fit(X)
    assert model.n_iter_ == reference.n_iter_
    assert_allclose(model.history_.objective, reference.history_.objective, rtol=1e-9)
    assert_allclose(np.abs(model.means_), np.abs(reference.means_), rtol=1e-6, atol=1e-9)
    assert_allclose(model.memberships_.compute(), reference.memberships_, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("init", ["community", "kmeans"])
def test_lapgmm_clusters_are_those_in_memory(init, rows, client):
    X, _ = rows

    model = LapGMM(5, init=init, lam="natural", pca=5, random_state=0).fit(in_blocks(X))

    reference = LapGMM(5, init=init, lam="natural", pca=5, random_state=0).fit(X)
    labels = model.labels_.compute()
    assert adjusted_rand_index(labels, reference.labels_) > 0.97
    assert_allclose(model.lam_, reference.lam_, rtol=0.1)
    assert (np.diff(model.history_.objective) > -1e-6 * abs(model.objective_)).all()
    assert np.mean(model.predict(X) == labels) > 0.95


def test_lapgmm_searches_the_weight_of_the_graph(rows, client):
    X, _ = rows

    model = LapGMM(5, pca=5, max_iter=8, tol=1e-2, random_state=0).fit(in_blocks(X))

    reference = LapGMM(5, pca=5, max_iter=8, tol=1e-2, random_state=0).fit(X)
    assert_allclose(model.lam_, reference.lam_, rtol=0.1)
    assert adjusted_rand_index(model.labels_.compute(), reference.labels_) > 0.97


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"solver": "printed"}, {}),
        ({"operator": "heat"}, {}),
        ({"n_smooth": 2}, {}),
        ({"n_init": 2}, {}),
        ({"init": "spectral"}, {}),
        ({}, {"sample_weight": np.ones(1500)}),
        ({}, {"y": np.full(1500, -1)}),
        ({}, {"constraints": 0}),
    ],
)
def test_options_of_lapgmm_without_a_block_version_say_so(options, arguments, rows, client):
    name = next(iter(options or arguments))

    with pytest.raises(InputError, match=f"{name} has a value that LapGMM cannot use with Dask arrays; "):
        LapGMM(5, **options).fit(in_blocks(rows[0]), **arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "uses_labels"),
    [
        (GaussianMixture(5, pca=4, random_state=0), False),
        (LapGMM(5, pca=4, lam="natural", random_state=0), False),
        (SpectralClustering(5, graph=KNNGraph(10), random_state=0), False),
        (LLGC(alpha=0.9), True),
        (ManifoldClustering(5, effort="fast", random_state=0), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_second_fit_in_the_same_directory_makes_no_block_and_a_damaged_one_is_repaired(
    model, uses_labels, rows, few, client, tmp_path, caplog
):
    X = in_blocks(rows[0][:1500], 3)
    arguments = (X, few[:1500]) if uses_labels else (X,)
    result = "transduction_" if uses_labels else "labels_"

    def fit():
        caplog.clear()
        with config_context(tmp_path / "work"), caplog.at_level("INFO", logger="fiedler.out_of_core"):
            labels = getattr(clone(model).fit(*arguments), result).compute()
        return labels, caplog.messages[-1]

    expected, _ = fit()
    again, message = fit()
    assert_array_equal(again, expected)
    assert message.startswith("0 blocks were made")
    for path in sorted((tmp_path / "work").rglob("*.npz"))[::7]:
        path.unlink()
    repaired, message = fit()
    assert_array_equal(repaired, expected)
    assert not message.startswith("0 blocks")


def test_lapgmm_needs_the_rows_of_its_graph(rows, client):
    with pytest.raises(InputError, match="graph has a value that LapGMM cannot use with Dask arrays; use metric="):
        LapGMM(5, graph=KNNGraph(9, metric="cosine")).fit(in_blocks(rows[0]))


def test_labels_in_one_block_spread_exactly_as_in_memory(rows, client):
    """With names of classes as objects, as data frames have them, and a labelled row without edges."""
    X = np.concatenate([rows[0][:600], np.full((1, 20), 1e3)])
    names = np.array(["abcde"[label] for label in rows[1][:600]] + ["a"], dtype=object)
    names[:580] = "-1"
    graph = KNNGraph(5, symmetrize="mutual")

    with pytest.warns(FiedlerWarning, match="no label reaches"):
        model = LLGC(graph, alpha=0.9).fit(in_blocks(X, 2), names)
    with pytest.warns(FiedlerWarning, match="no label reaches"):
        reference = LLGC(graph, alpha=0.9).fit(X, names.astype(str))

    assert_array_equal(model.transduction_.compute(), reference.transduction_)
    assert_allclose(model.label_distributions_.compute(), reference.label_distributions_, atol=1e-4)
    with pytest.raises(InputError, match="y contains infinity"):
        LLGC().fit(in_blocks(X, 2), np.where(np.arange(601) < 3, np.inf, -1.0))
    missing = np.where(names == "-1", None, names)
    with pytest.warns(FiedlerWarning, match="no label reaches"):
        again = LLGC(graph, alpha=0.9).fit(in_blocks(X, 2), missing)
    assert_array_equal(again.transduction_.compute(), reference.transduction_)

"""GaussianMixture on Dask arrays, on a cluster of two worker processes."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fiedler
from fiedler import LCGMM, GaussianMixture, LapGMM, ManifoldClustering
from fiedler.errors import InputError, NotConvergedWarning
from fiedler.metrics import clustering_accuracy
from fiedler.out_of_core import mixture

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.fixture
def rows(rng):
    """Four correlated groups, and a start in which three rows of ten are in a random group."""
    y = rng.randint(4, size=2000)
    X = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 3)) + 5 * rng.normal(size=(4, 3))[y]
    return X, np.where(rng.uniform(size=2000) < 0.3, rng.randint(4, size=2000), y), y


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_the_iterations_are_those_in_memory(kind, rows, client):
    X, start, _ = rows
    options = {"covariance_type": kind, "init": start, "tol": 1e-8}
    reference = GaussianMixture(4, **options).fit(X)

    model = GaussianMixture(4, **options).fit(da.from_array(X, chunks=(250, 3)))

    assert model.n_iter_ == reference.n_iter_
    for name in ("weights_", "means_", "covariances_"):
        assert_allclose(getattr(model, name), getattr(reference, name), rtol=1e-6)
    assert_allclose(model.history_.objective, reference.history_.objective)
    assert np.isnan(model.history_["change"]).all()
    assert_allclose(model.memberships_.compute(), reference.memberships_, atol=1e-6)
    assert_array_equal(model.labels_.compute(), reference.labels_)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-6), (np.float32, 1e-3)])
def test_weights_known_labels_and_components_are_those_in_memory(dtype, tolerance, rows, rng, client):
    X, start, y = rows
    X, known, weight = X.astype(dtype), np.where(np.arange(2000) < 300, y, -1), rng.uniform(1, 2, size=2000)
    options = {"init": start, "pca": 2, "ridge": "oas", "max_iter": 3}
    blocks = [da.from_array(values, chunks=300) for values in (start, weight)]

    with pytest.warns(NotConvergedWarning):
        reference = GaussianMixture(4, **options).fit(X, known, sample_weight=weight)
    with pytest.warns(NotConvergedWarning) as caught:
        model = GaussianMixture(4, **(options | {"init": blocks[0]})).fit(
            da.from_array(X, chunks=(300, 3)), known, sample_weight=blocks[1]
        )

    assert {one.filename for one in caught if one.category is NotConvergedWarning} == {__file__}
    assert_allclose(model.means_, reference.means_, rtol=tolerance, atol=tolerance)
    assert model.memberships_.dtype == dtype
    assert_array_equal(model.labels_[:300].compute(), y[:300])


def test_single_precision_keeps_the_covariances_of_clusters_far_apart(rng, client):
    y = rng.randint(2, size=1000)
    X = (1e5 * y[:, None] + rng.normal(size=(1000, 2))).astype(np.float32)

    model = GaussianMixture(2, init=y, ridge=0.0).fit(da.from_array(X, chunks=(300, 2)))

    expected = [np.cov(X[y == k].astype(np.float64).T, bias=True) for k in range(2)]
    assert_allclose(model.covariances_, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("init", ["kmeans", "community"])
def test_a_start_by_name_comes_from_a_sample_with_known_rows(init, fixed_rng, client, monkeypatch):
    y = fixed_rng.randint(4, size=2000)
    X = fixed_rng.normal(size=(2000, 3)) + 6 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])[y]
    monkeypatch.setattr(mixture, "MAX_SAMPLED_ROWS", 200)
    known = np.where(np.arange(2000) < 10, (y + 1) % 4, -1)
    blocks = da.from_array(X, chunks=(400, 3))

    plain, named = (
        GaussianMixture(4, init=init, n_init=3, random_state=0).fit(blocks, given) for given in (None, known)
    )

    assert clustering_accuracy(y, plain.labels_.compute()) > 0.95
    assert np.mean(named.labels_.compute() == (y + 1) % 4) > 0.95


def test_predictions_have_the_blocks_of_the_rows_and_models_can_be_saved(rows, client, tmp_path):
    X, start, _ = rows
    blocks = da.from_array(X, chunks=((500, 0, 700, 800), (3,)))

    model = GaussianMixture(4, init=start).fit(blocks)
    fiedler.save(model, tmp_path / "model.safetensors")
    loaded, copied = fiedler.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(model))

    for one in (model, loaded, copied):
        labels, proba = one.predict(blocks), one.predict_proba(blocks)
        assert labels.chunks == ((500, 0, 700, 800),)
        assert proba.chunks == ((500, 0, 700, 800), (4,))
        assert_allclose(proba.compute(), model.predict_proba(X))
        assert_array_equal(labels.compute(), model.predict(X))
    assert model.labels_.chunks == ((500, 0, 700, 800),)


@pytest.mark.parametrize("model", [LapGMM(4, random_state=0), ManifoldClustering(4, random_state=0)])
def test_models_that_were_fitted_to_a_sample_predict_blocks(model, rows, client):
    X, _, _ = rows
    model.fit(X[::4])
    blocks = da.from_array(X, chunks=(700, 3))

    assert_array_equal(model.predict(blocks).compute(), model.predict(X))
    assert_allclose(model.predict_proba(blocks).compute(), model.predict_proba(X), atol=1e-6)


@pytest.mark.slow
def test_without_a_client_a_local_one_is_used(rows):
    X, start, _ = rows

    model = GaussianMixture(4, init=start).fit(da.from_array(X, chunks=(1000, 3)))

    assert_allclose(model.means_, GaussianMixture(4, init=start).fit(X).means_)
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()


def _with(X, row, value):
    X = X.copy()
    X[row, 1] = value
    return X


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        (lambda X: da.from_array(_with(X, 1234, np.nan), chunks=(500, 3)), {}, "block 2, row 234 of it: .*NaN"),
        (lambda X: da.from_array(X, chunks=(500, 2)), {}, r"columns of X are divided into 2 blocks; .*rechunk"),
        (
            lambda X: da.from_array(X, chunks=(500, 3)).astype(str),
            {},
            "has dtype <U32, which is not one of numbers; convert it",
        ),
        (lambda X: da.from_array(X[:, 0], chunks=500), {}, "two dimensions"),
        (
            lambda X: da.from_array(X, chunks=(500, 3)),
            {"init": np.zeros(7, int)},
            "init must have one value for each of the 2000 rows",
        ),
        (lambda X: da.from_array(X, chunks=(500, 3)), {"pca": 5}, "an integer from 1 to 3"),
        (lambda X: da.from_array(X[:3], chunks=(2, 3)), {}, "more than the number of rows"),
    ],
)
def test_mistakes_give_one_sentence(change, options, sentence, rows, client):
    with pytest.raises(InputError, match=sentence):
        GaussianMixture(4, **options).fit(change(rows[0]))


def test_other_arguments_and_models_that_do_not_work_in_blocks_say_so(rows, client):
    blocks = da.from_array(rows[0], chunks=(500, 3))
    model = GaussianMixture(4, init=rows[1]).fit(blocks)

    with pytest.raises(InputError, match="constraints has a value that cannot be used with Dask arrays"):
        GaussianMixture(4).fit(blocks, constraints=fiedler.PairwiseConstraints([(0, 1)], [], 2000))
    for weights, sentence in ((np.full(2000, -1.0), "non-negative"), (np.zeros(2000), "all weights are zero")):
        with pytest.raises(InputError, match=sentence):
            GaussianMixture(4).fit(blocks, sample_weight=weights)
    with pytest.raises(InputError, match="init has a value that cannot be used with Dask arrays; name a start"):
        GaussianMixture(4, init="auto").fit(blocks)
    with pytest.raises(InputError, match=r"LCGMM\.fit does not take Dask arrays"):
        LCGMM(4).fit(blocks)
    with pytest.raises(InputError, match="whose rows it does not keep"):
        model.predict_proba(rows[0], use_graph=True)

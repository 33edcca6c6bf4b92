import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import FunctionTransformer

from fiedler import EmbedKMeans
from fiedler._records import KMeansResult
from fiedler.core import kmeans as module
from fiedler.core.arrays import to_numpy
from fiedler.core.kmeans import kmeans
from fiedler.errors import InputError, NotConvergedWarning


@pytest.fixture
def blobs(rng):
    y = np.repeat(np.arange(4), 50)
    return rng.normal(size=(200, 3)) * 0.3 + 5 * rng.normal(size=(4, 3))[y], y


def best_inertia(X, k):
    """Return the lowest inertia of all assignments, by brute force."""
    inertias = []
    for labels in itertools.product(range(k), repeat=len(X)):
        groups = [X[np.array(labels) == c] for c in set(labels)]
        inertias.append(sum(((g - g.mean(axis=0)) ** 2).sum() for g in groups))
    return min(inertias)


@pytest.fixture(autouse=True)
def on_the_device(monkeypatch):
    """Compute on every back end, though the problems of these tests are small."""
    monkeypatch.setattr(module, "MAX_HOST_MULTIPLICATIONS", 0)


def test_small_problems_have_the_same_result_on_every_back_end(rng, foreign, monkeypatch):
    monkeypatch.undo()
    X = rng.normal(size=(200, 5))  # without clusters, so that another seeding has another result
    expected = kmeans(X, 12, n_init=1, random_state=0)

    run = kmeans(foreign(X), 12, n_init=1, random_state=0)

    assert type(run.labels) is type(run.centers) is type(foreign(X))
    assert_array_equal(to_numpy(run.labels), expected.labels)
    assert_allclose(to_numpy(run.centers), expected.centers)


def test_the_best_run_reaches_the_optimum_of_a_tiny_problem(backend, rng):
    X = rng.normal(size=(8, 2))

    run = kmeans(backend(X), 2, n_init=20, random_state=0)

    assert_allclose(run.inertia, best_inertia(X, 2), rtol=1e-6)


def test_every_back_end_finds_scikit_learns_clusters(blobs, backend):
    X, y = blobs
    reference = KMeans(4, n_init=10, random_state=0).fit(X)

    run = kmeans(backend(X), 4, random_state=0)

    assert adjusted_rand_score(to_numpy(run.labels), y) == 1
    assert_allclose(run.inertia, reference.inertia_, rtol=1e-6)
    assert run.converged
    assert type(run.centers) is type(backend(X))


def test_inertia_is_the_sum_of_squared_distances_to_the_means(blobs, backend):
    X, _ = blobs
    run = kmeans(backend(X), 3, n_init=1, random_state=1, tol=0)
    labels, centers = to_numpy(run.labels), to_numpy(run.centers)

    assert_allclose(centers, [X[labels == c].mean(axis=0) for c in range(3)])
    assert_allclose(run.inertia, ((X - centers[labels]) ** 2).sum())


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_cosine_ignores_the_length_of_rows(wrap, rng):
    """Points in three directions at any distance from the origin."""
    y = np.repeat(np.arange(3), 30)
    X = np.eye(3)[y] * rng.uniform(0.01, 100, size=(90, 1)) + 0.001
    run = kmeans(wrap(X), 3, metric="cosine", random_state=0)

    assert adjusted_rand_score(run.labels, y) == 1
    assert_allclose(np.linalg.norm(run.centers, axis=1), 1)
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert_allclose(run.inertia, (1 - np.sum(U * run.centers[run.labels], axis=1)).sum(), atol=1e-10)


def test_cosine_is_alike_on_all_back_ends(blobs, foreign):
    X, _ = blobs
    reference = kmeans(X, 4, metric="cosine", random_state=0)

    run = kmeans(foreign(X), 4, metric="cosine", random_state=0)

    assert_array_equal(to_numpy(run.labels), reference.labels)


def test_runs_that_differ_by_rounding_are_ties_and_the_first_is_kept():
    runs = [KMeansResult(None, None, inertia, n_iter, True) for n_iter, inertia in enumerate([2.0, 1.0, 1.0 - 1e-15])]

    assert module._lowest_inertia(iter(runs), 1e-14).n_iter == 1
    assert module._lowest_inertia(iter(runs), 0.0).n_iter == 2


def test_an_empty_cluster_takes_the_farthest_row(backend):
    X = np.array([[0.0], [0.1], [0.2], [9.0]])
    labels, sq_distances = backend(np.zeros(4, dtype=np.int64)), backend(np.array([0.0, 0.01, 0.04, 81.0]))

    means = module._means(backend(X), labels, sq_distances, 2, spherical=False)

    assert_allclose(to_numpy(means)[1], [9.0])


def test_duplicate_rows_give_as_many_clusters_as_there_are_distinct_rows(backend):
    X = backend(np.repeat(np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]]), 4, axis=0))

    run = kmeans(X, 3, random_state=0)

    assert len(np.unique(to_numpy(run.labels))) == 3
    assert_allclose(run.inertia, 0, atol=1e-12)


@pytest.mark.parametrize(("offset", "dtype"), [(3e4, np.float32), (3e8, np.float64)])
def test_blobs_far_from_the_origin_are_distinguished(offset, dtype, blobs, backend):
    X, y = blobs

    run = kmeans(backend((X + offset).astype(dtype)), 4, random_state=0)

    assert adjusted_rand_score(to_numpy(run.labels), y) == 1
    assert_allclose(to_numpy(run.centers).mean(), offset, rtol=1e-3)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_more_clusters_than_distinct_rows_is_a_warning(metric, backend):
    X = backend(np.repeat(np.array([[0.0, 1.0], [1.0, 0.0]]), 4, axis=0))

    with pytest.warns(NotConvergedWarning, match="only 2 distinct clusters for n_clusters=3") as caught:
        kmeans(X, 3, metric=metric, random_state=0)

    assert [warning.message.code for warning in caught] == ["duplicate_rows"]
    assert caught[0].message.fields == {"n_distinct": 2, "n_clusters": 3}
    assert caught[0].category is NotConvergedWarning


def test_the_estimator_accepts_lists_and_rejects_nan(backend):
    assert EmbedKMeans(2, random_state=0).fit([[0.0], [0.1], [5.0]]).labels_.tolist() in ([0, 0, 1], [1, 1, 0])
    for metric in ("euclidean", "cosine"):
        with pytest.raises(ValueError, match="NaN"):
            EmbedKMeans(2, metric=metric).fit(backend(np.array([[0.0], [np.nan]])))


def test_the_estimator_rejects_infinity_from_its_embedding():
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="infinity"):
        EmbedKMeans(2, FunctionTransformer(np.log), metric="cosine").fit([[0.0], [1.0], [2.0]])


def test_float32_is_kept(blobs, backend):
    run = kmeans(backend(blobs[0].astype(np.float32)), 3, random_state=0)

    assert "float32" in str(run.centers.dtype)


def test_the_same_seed_gives_the_same_result(blobs, backend):
    first, second = (kmeans(backend(blobs[0]), 5, n_init=2, random_state=11) for _ in range(2))

    assert_array_equal(to_numpy(first.labels), to_numpy(second.labels))


def test_more_clusters_than_rows_is_an_error(backend):
    with pytest.raises(InputError, match=r"n_clusters=4 is more than the number of rows \(n_samples=3\)") as caught:
        kmeans(backend(np.zeros((3, 2))), 4)

    assert caught.value.code == "n_clusters_too_large"

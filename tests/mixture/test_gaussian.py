import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Peer

from fiedler import GaussianMixture
from fiedler._validation import check_data
from fiedler.core.arrays import order_by_first_row, to_numpy
from fiedler.errors import NotConvergedWarning, SingularCovarianceError
from fiedler.metrics import adjusted_rand_index, clustering_accuracy
from fiedler.mixture import base
from fiedler.mixture import base as starts
from fiedler.mixture.covariance import SHAPES, estimate


@pytest.fixture
def groups(rng):
    X = [rng.normal(size=(100, 4)) @ rng.normal(size=(4, 4)) + 4 * rng.normal(size=4) for _ in range(3)]
    return np.concatenate(X), np.repeat(np.arange(3), 100)


@pytest.mark.parametrize("kind", list(SHAPES))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_agrees_with_scikit_learn_after_as_many_steps_from_the_same_start(kind, groups):
    X, start = groups
    first = estimate(X, np.eye(3)[start], kind=kind, ridge=0.0)  # with a ridge, ours counts in the E-step too
    precisions = np.linalg.inv(first.covariances) if kind in ("full", "tied") else 1 / first.covariances
    peer = Peer(3, covariance_type=kind, reg_covar=0.0, weights_init=first.weights, means_init=first.means,
                precisions_init=precisions, tol=0, max_iter=30).fit(X)  # fmt: skip

    model = GaussianMixture(3, covariance_type=kind, ridge=0.0, init=start, tol=1e-300, max_iter=31).fit(X)

    assert_allclose(model.memberships_, peer.predict_proba(X), atol=1e-6)
    assert_allclose(model.predict_proba(X + 0.1), peer.predict_proba(X + 0.1), atol=1e-6)
    assert_allclose([model.score(X), model.bic(X), model.aic(X)], [peer.score(X), peer.bic(X), peer.aic(X)], rtol=1e-8)
    assert_allclose(model.covariances_, peer.covariances_, rtol=1e-4)


@pytest.mark.parametrize("kind", list(SHAPES))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_likelihood_never_falls_and_back_ends_agree(kind, dtype, groups, backend):
    X, y = groups
    X = X.astype(dtype)
    reference = GaussianMixture(3, covariance_type=kind, init=(y + (X[:, 0] > 0)) % 3, tol=1e-9).fit(X)

    model = GaussianMixture(3, covariance_type=kind, init=(y + (X[:, 0] > 0)) % 3, tol=1e-9).fit(backend(X))

    tol = 1e-2 if dtype == np.float32 else 1e-9
    assert np.diff(reference.history_.objective).min() > -tol * len(X)
    assert np.dtype(dtype).name in str(model.memberships_.dtype)
    assert_allclose(to_numpy(model.memberships_), reference.memberships_, atol=1e-2 if dtype == np.float32 else 1e-6)


def test_memberships_are_the_prediction_and_labels_their_argmax(groups):
    X, _ = groups
    model = GaussianMixture(3, random_state=0).fit(X)

    assert_allclose(model.memberships_, model.predict_proba(X))
    assert_array_equal(model.labels_, model.memberships_.argmax(axis=1))
    assert_allclose(model.memberships_.sum(axis=1), 1)
    assert model.penalty_ == 0


def test_weights_are_repetitions(groups, rng):
    X, _ = groups
    counts = rng.randint(1, 4, size=300)
    start = rng.randint(3, size=300)

    weighted = GaussianMixture(3, init=start, max_iter=5, tol=1e-12, ridge=1e-9)
    repeated = GaussianMixture(3, init=np.repeat(start, counts), max_iter=5, tol=1e-12, ridge=1e-9)
    with pytest.warns(NotConvergedWarning, match="within max_iter=5 iterations; raise max_iter or tol") as caught:
        weighted.fit(X, sample_weight=counts)
    assert (caught[0].message.code, caught[0].message.fields) == ("not_converged", {"max_iter": 5})
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        repeated.fit(np.repeat(X, counts, axis=0))

    assert_allclose(weighted.means_, repeated.means_, rtol=1e-5)


def test_known_rows_keep_their_label(groups):
    X, y = groups
    partial = np.where(np.arange(300) % 10 == 0, (y + 1) % 3, -1)
    model = GaussianMixture(3, random_state=0).fit(X, partial)

    assert_array_equal(model.labels_[partial >= 0], partial[partial >= 0])
    assert adjusted_rand_index(y, model.labels_) > 0.6


@pytest.mark.parametrize("init", ["kmeans", "spectral", "random"])
def test_every_start_finds_clear_groups(init, rng):
    y = np.repeat(np.arange(3), 80)
    X = rng.normal(size=(240, 3)) + 12 * np.eye(3)[y]

    assert adjusted_rand_index(y, GaussianMixture(3, init=init, n_init=5, random_state=0).fit(X).labels_) == 1


def test_a_start_that_fails_does_not_stop_the_others(groups, monkeypatch):
    X, _ = groups
    memberships = iter([np.eye(3)[np.zeros(300, dtype=int)], np.eye(3)[np.arange(300) % 3]])
    monkeypatch.setitem(starts.STARTS, "kmeans", lambda *a: next(memberships))

    assert GaussianMixture(3, ridge=0.0, n_init=2, random_state=0).fit(X).n_iter_ > 0


def test_sparse_rows_are_reduced_by_pca_without_being_densified():
    X = sp.random(200, 3000, density=0.01, format="lil", random_state=0)
    X[:100, :20] = 1
    X, start = X.tocsr(), np.repeat([0, 1], 100)

    sparse, dense = (
        GaussianMixture(2, ridge=0.1, pca=3, init=start, random_state=0).fit(rows) for rows in (X, X.toarray())
    )

    assert_allclose(sparse.memberships_, dense.memberships_, atol=1e-3)
    assert_allclose(sparse.score(X), dense.score(X.toarray()), rtol=1e-2)


@pytest.mark.parametrize("n_features", [2, 60])
def test_the_default_ridge_suits_few_and_many_columns(n_features, rng):
    """Twenty small clusters in a plane, which a tenth of the variance blurs; three with more parameters than rows."""
    k = 20 if n_features == 2 else 3
    centers = 10 * np.stack(np.divmod(np.arange(k), 5), axis=1) @ np.eye(2, n_features)
    y = np.arange(40 * k) % k
    X = centers[y] + rng.normal(size=(40 * k, n_features))

    model = GaussianMixture(k, n_init=5, random_state=0).fit(X)

    assert clustering_accuracy(y, model.labels_) > 0.95


@pytest.mark.parametrize("pca", [2, 0.8])
def test_pca_reduces_the_densities_on_every_back_end(pca, groups, backend):
    X, y = groups
    model = GaussianMixture(3, pca=pca, init=y).fit(backend(X))
    reference = GaussianMixture(3, pca=pca, init=y).fit(X)

    assert model.means_.shape == reference.means_.shape
    assert_allclose(to_numpy(model.memberships_), reference.memberships_, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"covariance_type": "round"}, None, r"covariance_type='round' is not known; choose one of \['full', 'tied'"),
        ({"init": "magic"}, None, r"init='magic' is not known; choose one of \['auto', 'kmeans', 'spectral'"),
        ({"init": np.zeros(7)}, None, r"init must be one of .* got an array of shape \(7,\)"),
        ({"ridge": -1}, None, "ridge must be a non-negative number"),
        ({"pca": 9}, None, r"pca=9 must be a share of the variance in \(0, 1\) or an integer from 1 to 4"),
        ({}, np.ones((20, 2)), "all rows of X are equal"),
        ({"ridge": 0.0, "init": np.arange(20) % 10, "n_clusters": 10}, np.random.RandomState(0).normal(size=(20, 9)),
         "not positive definite"),
        ({}, sp.eye_array(20, format="csr"), "densities of sparse rows need fewer dimensions; set pca"),
    ],
)  # fmt: skip
def test_invalid_input_raises_an_error(options, data, message, groups):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(**({"n_clusters": 3} | options)).fit(groups[0] if data is None else data)


def test_labels_of_another_length_are_rejected(groups):
    for y in ([0, -1], [0, 1]):
        with pytest.raises(ValueError, match="y has 2 entries, but 300 are required"):
            GaussianMixture(3).fit(groups[0], y)


@pytest.mark.parametrize("y", [[5, -1] * 150, [-2, -1] * 150])
def test_invalid_labels_are_rejected(y, groups):
    with pytest.raises(ValueError, match="y must contain 300 labels, from 0 to 2, or -1 for unknown"):
        GaussianMixture(3).fit(groups[0], y)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_scale_of_the_weights_does_not_matter(scale, groups):
    X, y = groups
    plain = GaussianMixture(3, init=y).fit(X, sample_weight=np.ones(300))
    scaled = GaussianMixture(3, init=y).fit(X, sample_weight=np.full(300, scale))

    assert scaled.n_iter_ == plain.n_iter_
    assert_allclose(scaled.memberships_, plain.memberships_, atol=1e-9)


def test_scores_are_densities(rng):
    """exp(score_samples) integrates to one, whatever the ridge."""
    model = GaussianMixture(2, random_state=0).fit(rng.normal(size=(100, 1)))
    grid = np.linspace(-20, 20, 4001)[:, None]

    assert_allclose(np.exp(model.score_samples(grid)).sum() * 0.01, 1, atol=1e-6)


def test_a_component_without_rows_raises_an_error_of_its_own(groups):
    with pytest.raises(
        SingularCovarianceError, match="a component has lost all its rows; use fewer clusters or another init"
    ) as caught:
        GaussianMixture(3, init=np.zeros(300, dtype=int)).fit(groups[0])
    assert caught.value.code == "empty_component"


def test_a_failed_refit_changes_nothing(groups):
    X, y = groups
    model = GaussianMixture(3, init=y, pca=2).fit(X)
    expected = model.predict_proba(X)
    with pytest.raises(ValueError, match="lost all its rows"):
        model.set_params(init=np.zeros(300, dtype=int), pca=3).fit(X)

    assert_array_equal(model.predict_proba(X), expected)


def test_complete_labels_are_ignored(groups):
    X, y = groups
    unlabeled = GaussianMixture(3, random_state=0).fit(X)
    labeled = GaussianMixture(3, random_state=0).fit(X, (y + 1) % 3)

    assert_array_equal(unlabeled.labels_, labeled.labels_)


def test_rows_are_validated_once(groups, monkeypatch):
    """Once per fit and prediction; an estimator that contains a mixture has validated them already."""
    X, y = groups
    checked = []
    monkeypatch.setattr(base, "check_data", lambda X, **options: checked.append(options) or check_data(X, **options))
    model = GaussianMixture(3, init=y).fit(X)
    assert len(checked) == 1
    model.predict_proba(X, use_graph=True)
    assert len(checked) == 2

    nested = GaussianMixture(3, init=y)._fit_validated(X)

    assert len(checked) == 2
    order = order_by_first_row(model.labels_, 3)  # of the nested clusters; those of the model are numbered as in init
    assert_allclose(nested.predict_proba(X), model.predict_proba(X)[:, order], atol=1e-12)
    assert nested.n_features_in_ == 4

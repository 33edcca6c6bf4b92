import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.covariance import OAS

from fiedler import GaussianMixture
from fiedler.core import linear as affine
from fiedler.core.arrays import to_numpy
from fiedler.datasets import blobs
from fiedler.errors import InputError, SingularCovarianceError
from fiedler.metrics import clustering_accuracy
from fiedler.mixture import covariance as module
from fiedler.mixture.covariance import SHAPES, default_ridge, estimate, log_joint, n_parameters


@pytest.fixture
def weighted(rng):
    X = rng.normal(size=(60, 3)) + 50
    R = rng.uniform(size=(60, 2))
    return X, R / R.sum(axis=1, keepdims=True)


def printed(X, R):
    """[lapgmm, Eqs 13-15], entry by entry."""
    n, k = R.shape
    alpha = [sum(R[j, i] for j in range(n)) / n for i in range(k)]
    mu = [sum(R[j, i] * X[j] for j in range(n)) / R[:, i].sum() for i in range(k)]
    sigma = [sum(R[j, i] * np.outer(X[j] - mu[i], X[j] - mu[i]) for j in range(n)) / R[:, i].sum() for i in range(k)]
    return np.array(alpha), np.array(mu), np.array(sigma)


def expand(model, d):
    """Covariances of any shape as full matrices."""
    S, k = to_numpy(model.covariances), len(to_numpy(model.weights))
    return {
        "full": lambda: S,
        "tied": lambda: np.tile(S, (k, 1, 1)),
        "diag": lambda: np.array([np.diag(s) for s in S]),
        "spherical": lambda: np.array([s * np.eye(d) for s in S]),
    }[model.kind]()


def test_full_estimates_are_the_printed_sums(weighted, backend):
    X, R = weighted
    model = estimate(backend(X), backend(R), kind="full", ridge=0.0)

    for estimated, expected in zip((model.weights, model.means, model.covariances), printed(X, R)):
        assert_allclose(to_numpy(estimated), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", list(SHAPES))
def test_other_shapes_are_parts_of_the_full_one(kind, weighted, backend):
    X, R = weighted
    alpha, _, sigma = printed(X, R)
    expected = {
        "full": sigma,
        "tied": np.tile(np.tensordot(alpha, sigma, 1), (2, 1, 1)),
        "diag": np.array([np.diag(np.diag(s)) for s in sigma]),
        "spherical": np.array([np.trace(s) / 3 * np.eye(3) for s in sigma]),
    }[kind] + 0.2 * np.eye(3)

    assert_allclose(expand(estimate(backend(X), backend(R), kind=kind, ridge=0.2), 3), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", list(SHAPES))
def test_densities_are_scipys_minus_the_blur(kind, weighted, backend):
    """E log N(x + ε; μ, Σ) = log N(x; μ, Σ) - ½ρ tr Σ⁻¹ for ε ~ N(0, ρI)."""
    X, R = weighted
    model = estimate(backend(X), backend(R), kind=kind, ridge=0.01)
    alpha, means, sigma = to_numpy(model.weights), to_numpy(model.means), expand(model, 3)

    expected = [
        np.log(a) + multivariate_normal(m, s).logpdf(X) - 0.5 * 0.01 * np.trace(np.linalg.inv(s))
        for a, m, s in zip(alpha, means, sigma)
    ]

    assert_allclose(to_numpy(log_joint(backend(X), model)), np.array(expected).T, rtol=1e-9)


@pytest.mark.parametrize("kind", list(SHAPES))
def test_blocks_change_nothing(kind, weighted, monkeypatch):
    X, R = weighted
    in_one_block = estimate(X, R, kind=kind, ridge=0.1)
    monkeypatch.setattr("fiedler.mixture.statistics.CACHE_BYTES", 1)
    X, R = np.tile(X, (3, 1)), np.tile(R, (3, 1))

    assert_allclose(estimate(X, R, kind=kind, ridge=0.1).covariances, in_one_block.covariances)


@pytest.mark.parametrize("kind", list(SHAPES))
def test_the_ridge_maximises_the_expected_density_of_blurred_rows(kind, weighted, rng):
    X, R = weighted
    best = estimate(X, R, kind=kind, ridge=0.3)

    def expected(scale):
        changed = best._replace(covariances=best.covariances * scale, factors=best.factors / np.sqrt(scale))
        return np.sum(R * log_joint(X, changed))

    assert all(expected(1.0) > expected(scale) for scale in (0.8, 0.95, 1.05, 1.3))


def test_log_determinants_do_not_underflow():
    """In 300 dimensions with variances of 1e-4 the determinant is 1e-1200; its logarithm is not."""
    X = 0.01 * np.random.RandomState(0).normal(size=(400, 300))
    model = estimate(X, np.ones((400, 1)), kind="full", ridge=1e-6)

    assert np.isfinite(log_joint(X, model)).all()


def test_a_singular_covariance_raises_an_error_that_says_what_to_do(backend):
    X = backend(np.ones((5, 2)))
    for kind in SHAPES:
        with pytest.raises(SingularCovarianceError, match=r"not positive definite: .* raise ridge, .* pca"):
            estimate(X, backend(np.ones((5, 1))), kind=kind, ridge=0.0)


@pytest.mark.parametrize(("kind", "count"), [("full", 3 * 10), ("tied", 10), ("diag", 12), ("spherical", 3)])
def test_parameters_are_counted(kind, count):
    assert n_parameters(kind, 3, 4) == count + 3 * 4 + 2


@pytest.mark.parametrize("kind", list(SHAPES))
def test_distant_clusters_keep_their_digits_in_single_precision(kind, rng):
    """A thousand widths apart, from the origin and from each other."""
    y = np.repeat([0, 1], 200)
    X = (rng.normal(size=(400, 3)) + 1000.0 * y[:, None]).astype(np.float32)
    R = np.eye(2, dtype=np.float32)[y]
    exact = estimate(X.astype(np.float64), R.astype(np.float64), kind=kind, ridge=0.0)
    single = estimate(X, R, kind=kind, ridge=0.0)

    assert_allclose(single.covariances, exact.covariances, rtol=1e-4, atol=1e-4)
    errors = np.take_along_axis(log_joint(X, single) - log_joint(X.astype(np.float64), exact), y[:, None], axis=1)
    assert np.abs(errors).max() < 0.05


@pytest.mark.parametrize("kind", list(SHAPES))
@pytest.mark.parametrize("off", [1.0, 5.0, 30.0, 300.0, 3000.0])
def test_digits_are_kept_at_every_separation_on_one_axis_of_many(kind, off, rng):
    X = rng.normal(size=(600, 100)).astype(np.float32)
    y = np.repeat([0, 1], 300)
    X[:, 0] += np.float32(off) * (2 * y - 1)
    R = np.eye(2, dtype=np.float32)[y]
    single = estimate(X, R, kind=kind, ridge=0.1)
    exact = estimate(X.astype(np.float64), R.astype(np.float64), kind=kind, ridge=0.1)
    scale = np.abs(exact.covariances).max()
    assert_allclose(single.covariances, exact.covariances, atol=2e-4 * scale)


@pytest.mark.parametrize("kind", list(SHAPES))
def test_single_precision_sums_are_used_only_where_little_cancels(kind, rng, monkeypatch):
    used = []

    def sums(*args, dtype, **options):
        used.append(np.dtype(dtype).name)
        return original(*args, dtype=dtype, **options)

    original = module.weighted_statistics
    monkeypatch.setattr(module, "weighted_statistics", sums)
    y = np.repeat([0, 1], 200)
    near = rng.normal(size=(400, 3)) + y[:, None]
    correlated = near @ (np.ones((3, 3)) + 1e-3 * np.eye(3)) if kind in ("full", "tied") else near + 1e3 * y[:, None]
    R = np.eye(2)[y]
    for X, expected in ((near, ["float32"]), (correlated, ["float32", "float64"])):
        used.clear()
        rows = X.astype(np.float32)
        single = estimate(rows, R.astype(np.float32), kind=kind, ridge=0.0)
        assert used == expected
        exact = estimate(rows.astype(np.float64), R, kind=kind, ridge=0.0)
        assert_allclose(single.covariances, exact.covariances, rtol=1e-4, atol=1e-5)


def test_prepared_rows_have_the_same_densities(backend, rng, monkeypatch):
    """As on an accelerator, where rows are prepared once for all iterations."""
    for part in (module, affine):
        monkeypatch.setattr(part, "is_on_host", lambda X: False)
    X = backend(rng.normal(size=(50, 4)))
    model = estimate(X, backend(rng.uniform(size=(50, 3))), kind="full", ridge=0.1)
    prepared = module.prepare(X, kind="full", origin=model.origin)

    assert prepared.shape == (50, 8)
    assert_allclose(to_numpy(log_joint(X, model, prepared)), to_numpy(log_joint(X, model)), rtol=1e-12)
    assert module.prepare(X, kind="diag", origin=model.origin) is None


# ----------------------------------------------------------------------------------------------------------- shrinkage


@pytest.mark.parametrize(
    ("kind", "n", "expected"),
    [
        ("full", 30, 0.1),  # three covariances of ten parameters each
        ("full", 3000, 0.01),
        ("full", 10**7, 0.001),
        ("tied", 1000, 0.01),
        ("diag", 1200, 0.01),
        ("spherical", 300, 0.01),
    ],
)
def test_the_default_ridge_is_the_printed_root_of_parameters_per_row(kind, n, expected):
    assert_allclose(default_ridge(kind, 3, 4, n), expected)


def printed_oas(X):
    """[Chen, Wiesel, Eldar & Hero 2010, Eq. 23]; scikit-learn leaves out the terms with 2/d."""
    n, d = X.shape
    S = np.cov(X.T, bias=True).reshape(d, d)
    trace, square = np.trace(S), np.trace(S @ S)
    denominator = (n + 1 - 2 / d) * (square - trace**2 / d)
    share = 1 if denominator <= 0 else min(1, ((1 - 2 / d) * square + trace**2) / denominator)
    return (1 - share) * S + share * trace / d * np.eye(d)


@pytest.mark.parametrize("shape", [(8, 5), (300, 5), (40, 1), (3, 60)])
def test_shrunken_covariances_are_the_printed_formula(shape, backend, rng):
    X = rng.normal(size=shape) * rng.uniform(0.1, 3, size=shape[1])
    model = estimate(backend(X), backend(np.ones((shape[0], 1))), kind="full", ridge=0.0, shrinks=True)
    tied = estimate(backend(X), backend(np.full((shape[0], 2), 0.5)), kind="tied", ridge=0.0, shrinks=True)

    assert_allclose(to_numpy(model.covariances)[0], printed_oas(X), rtol=1e-8, atol=1e-12)
    assert_allclose(to_numpy(tied.covariances), printed_oas(X), rtol=1e-8, atol=1e-12)


def test_shrunken_covariances_in_many_dimensions_are_those_of_scikit_learn(rng):
    X = rng.normal(size=(50, 400)) * rng.uniform(0.1, 3, size=400)
    model = estimate(X, np.ones((50, 1)), kind="full", ridge=0.0, shrinks=True)

    assert_allclose(model.covariances[0], OAS().fit(X).covariance_, atol=2e-3)


def test_each_component_is_shrunken_by_its_own_rows(rng):
    X, labels = rng.normal(size=(60, 4)), np.repeat([0, 1], [50, 10])
    model = estimate(X, np.eye(2)[labels], kind="full", ridge=0.0, shrinks=True)

    for component in range(2):
        assert_allclose(model.covariances[component], printed_oas(X[labels == component]), rtol=1e-8)


def test_many_rows_are_hardly_shrunken(rng):
    X = rng.normal(size=(100_000, 3)) * [1, 2, 3]
    plain, shrunken = (
        estimate(X, np.ones((len(X), 1)), kind="full", ridge=0.0, shrinks=shrinks) for shrinks in (False, True)
    )

    assert_allclose(shrunken.covariances, plain.covariances, atol=1e-3)


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_variances_are_not_shrunken(kind, weighted):
    X, R = weighted
    plain, shrunken = (estimate(X, R, kind=kind, ridge=0.0, shrinks=shrinks) for shrinks in (False, True))

    assert_allclose(shrunken.covariances, plain.covariances)


def test_a_mixture_with_shrinkage_needs_fewer_rows_than_parameters(rng):
    X, y = blobs(n_samples=40, n_clusters=2, n_features=30, noise=1.0, random_state=0)
    model = GaussianMixture(2, ridge="oas", random_state=0).fit(X)

    assert clustering_accuracy(y, model.labels_) == 1
    with pytest.raises(InputError, match="ridge='aos' is not known"):
        GaussianMixture(2, ridge="aos").fit(X)

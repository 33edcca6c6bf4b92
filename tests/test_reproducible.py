"""Same version, same seed, same labels: in any order of the rows, on any number of threads and any processor."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_clusterer
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from contract import INSTANCES, blobs, fit, rows_for
from fiedler import NLE, ManifoldClustering, choose_n_clusters
from fiedler.core.arrays import order_by_first_row, to_numpy
from fiedler.errors import InputError

CLUSTERERS = [model for model in INSTANCES if is_clusterer(model)]
CORE_TYPES = ("Haswell", "SkylakeX", "Nehalem")  # kernels of OpenBLAS
THREADS = (1, 2, 4, 8)
NUMPY_ONLY = ("NMFClustering", "GNMF")
ALL = [(core_type, n_threads) for core_type in CORE_TYPES for n_threads in THREADS]
SOME = [("Haswell", 1), ("SkylakeX", 2), ("Nehalem", 4), ("Haswell", 8)]  # every core type, every number of threads


def with_seed(model, seed, **params):
    """Return a clone with other parameters, and a seed if it takes one."""
    seeded = {"random_state": seed} if "random_state" in model.get_params() else {}
    return clone(model).set_params(**seeded, **params)


@pytest.mark.parametrize("model", CLUSTERERS, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore")
def test_clusters_are_numbered_in_the_order_of_their_first_rows(model):
    X = rows_for(model, blobs())[::-1]
    for seed in (0, 1, 2):
        labels = to_numpy(fit(with_seed(model, seed), X).labels_)
        n_clusters = labels.max() + 1
        assert_array_equal(order_by_first_row(labels, n_clusters), np.arange(n_clusters))


# ------------------------------------------------------------------------------------------------- threads, processors


def labels_of_all():
    """Return the labels of every clusterer on digits, on which many distances are equal."""
    X = load_digits().data[:150]
    models = [with_seed(model, 0, n_clusters=6) for model in CLUSTERERS]
    return {
        f"{number} {type(model).__name__}": to_numpy(fit(model, rows_for(model, X)).labels_)
        for number, model in enumerate(models)
    }


@pytest.fixture(scope="module")
def expected():
    with threadpool_limits(1):
        return labels_of_all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("core_type", "n_threads"), ALL if "FIEDLER_EXHAUSTIVE" in os.environ else SOME)
def test_labels_depend_neither_on_the_processor_nor_on_threads(core_type, n_threads, expected, tmp_path):
    """OpenBLAS has other kernels for each core type; without the features that are optional, so has NumPy."""
    file = tmp_path / "labels.npz"
    environment = os.environ | {"OPENBLAS_CORETYPE": core_type, "OMP_NUM_THREADS": str(n_threads)}
    environment |= {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_NUM_THREADS": str(n_threads)}
    if core_type != "SkylakeX":
        environment["NPY_DISABLE_CPU_FEATURES"] = " ".join(np._core._multiarray_umath.__cpu_dispatch__)
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    program = "import sys, warnings; warnings.simplefilter('ignore'); import numpy as np, test_reproducible as t; "
    program += "np.savez(sys.argv[1], **t.labels_of_all())"

    subprocess.run([sys.executable, "-c", program, str(file)], env=environment, check=True, capture_output=True)

    with np.load(file) as labels:
        assert set(labels.files) == set(expected)
        for name in labels.files:
            assert_array_equal(labels[name], expected[name], err_msg=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", CLUSTERERS, ids=lambda model: type(model).__name__)
def test_torch_finds_the_same_partition_and_nearly_the_same_memberships(model):
    """On data where another seeding of k-means gave another partition."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = rows_for(model, StandardScaler().fit_transform(load_wine().data))
    on_numpy = fit(with_seed(model, 0), X)
    if type(model).__name__ in NUMPY_ONLY:
        with pytest.raises(InputError, match="does not support arrays of torch"):
            fit(clone(model), torch.asarray(X))
        return
    on_torch = fit(with_seed(model, 0), torch.asarray(X))
    assert_array_equal(to_numpy(on_torch.labels_), on_numpy.labels_)
    if hasattr(on_numpy, "memberships_"):
        assert_allclose(to_numpy(on_torch.memberships_), on_numpy.memberships_, atol=1e-5)


# ---------------------------------------------------------------------------------------------------------------- laws


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:400]


@pytest.fixture(scope="module")
def labels_of_digits(digits):
    return ManifoldClustering(10, random_state=0).fit(digits).labels_


def rotated(X):
    return X @ np.linalg.qr(np.random.RandomState(0).normal(size=(X.shape[1], X.shape[1])))[0]


CHANGES = {
    "rotated": rotated,
    "shifted": lambda X: X + 7.25,
    "scaled": lambda X: 1e-6 * X,
    "float32": lambda X: X.astype(np.float32),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_manifold_clustering_is_blind_to(change, digits, labels_of_digits):
    assert_array_equal(ManifoldClustering(10, random_state=0).fit(change(digits)).labels_, labels_of_digits)


def test_permuted_rows_have_permuted_results(digits, labels_of_digits):
    order = np.random.RandomState(1).permutation(len(digits))
    model = ManifoldClustering(10, random_state=0).fit(digits[order])
    assert adjusted_rand_score(model.labels_, labels_of_digits[order]) == 1
    assert_array_equal(model.predict(digits[order]), model.labels_)


def test_the_number_of_clusters_does_not_depend_on_the_order_of_the_rows():
    X, weights = load_wine().data, np.arange(178) % 5 + 1
    order = np.random.RandomState(1).permutation(len(X))
    choices = (
        choose_n_clusters(rows, range(2, 7), sample_weight=of_rows, random_state=0)
        for rows, of_rows in ((X, weights), (X[order], weights[order]))
    )
    assert next(choices) == next(choices)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_a_data_set_written_twice_has_the_same_clusters(load):
    X = load().data
    once, twice = (ManifoldClustering(3, random_state=0).fit(rows).labels_ for rows in (X, np.tile(X, (2, 1))))
    assert_array_equal(twice, np.tile(once, 2))


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_nle_does_not_depend_on_the_unit_of_the_rows(digits):
    labels = NLE(10, n_init=3, random_state=0).fit(digits).labels_
    for unit in (1e-6, 1e6):
        assert_array_equal(NLE(10, n_init=3, random_state=0).fit(unit * digits).labels_, labels)

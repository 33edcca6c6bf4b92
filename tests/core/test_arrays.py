import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

from fiedler.core import arrays as module
from fiedler.core.arrays import fix_signs, logsumexp, row_blocks, smallest_k, softmax, sq_norms, to_numpy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "k"), [((6, 50), 4), ((3, 7), 7), ((5, 101), 1), ((4, 30), 20)])
def test_smallest_k_is_the_head_of_a_sort(shape, k, dtype, backend, rng):
    values = rng.permutation(shape[0] * shape[1]).reshape(shape).astype(dtype)

    smallest, columns = smallest_k(backend(values), k)

    order = np.argsort(values, axis=1)[:, :k]
    assert_array_equal(to_numpy(columns), order)
    assert_array_equal(to_numpy(smallest), np.take_along_axis(values, order, axis=1))


def test_smallest_k_with_ties_finds_the_right_values(backend, rng):
    values = rng.randint(3, size=(20, 60)).astype(float)

    smallest, columns = smallest_k(backend(values), 9)

    assert_array_equal(to_numpy(smallest), np.sort(values, axis=1)[:, :9])
    assert_array_equal(np.take_along_axis(values, to_numpy(columns), axis=1), to_numpy(smallest))
    assert all(len(set(row)) == 9 for row in to_numpy(columns).tolist())


@pytest.mark.parametrize(("n_columns", "k"), [(300, 5), (20, 20), (7, 1)])
def test_smallest_k_by_packed_keys_is_the_head_of_a_sort(n_columns, k, rng):
    """CuPy's way, which also runs on NumPy: values of both signs, zeros and infinity."""
    values = rng.normal(size=(8, n_columns)).astype(np.float32)
    values[0, :3], values[1, 1], values[2, 2] = 0, np.inf, -np.inf
    values[0, 1] = -0.0

    smallest, columns = module._smallest_by_keys(values, k, module.namespace(values))

    assert_array_equal(smallest, np.sort(values, axis=1)[:, :k])
    assert_array_equal(np.take_along_axis(values, columns, axis=1), smallest)


@pytest.mark.parametrize("order", ["C", "F"])
def test_outer_rows_as_complex_pairs_are_the_same(order, rng, monkeypatch):
    """torch's way on accelerators, for an even number of single-precision columns."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(module, "is_on_host", lambda X: False)
    Z, w = (rng.normal(size=(40, columns)).astype(np.float32) for columns in (6, 3))
    rows = torch.asarray(Z) if order == "C" else torch.asarray(Z.T.copy()).T

    assert_array_equal(module.outer_rows(torch.asarray(w), rows).numpy(), w[:, :, None] * Z[:, None, :])


def test_row_blocks_on_a_device_are_aligned(monkeypatch):
    monkeypatch.setattr(module, "is_on_host", lambda X: False)
    sizes = [block.stop - block.start for block in row_blocks(1000, 2**20, np.empty(0), device_bytes=200 * 2**20)]

    assert sizes == [192, 192, 192, 192, 192, 40]
    assert next(row_blocks(1000, 2**40, np.empty(0), min_rows=100)) == slice(0, 100)


def test_the_largest_entry_is_positive_and_the_first_decides_a_tie(backend):
    vectors = np.array([[0.1, 0.7, -0.5], [-0.9, -0.7 - 1e-12, 0.5], [0.2, 0.1, 0.0]])

    assert_array_equal(np.sign(to_numpy(fix_signs(backend(vectors))))[[1, 0, 0], [0, 1, 2]], [1, 1, 1])


def test_row_blocks_cover_all_rows_once():
    rows = [i for block in row_blocks(1000, 2**20, np.empty(0)) for i in range(block.start, block.stop)]

    assert rows == list(range(1000))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_and_logsumexp_are_scipys(dtype, backend, rng):
    values = (300 * rng.normal(size=(50, 4))).astype(dtype)
    values[3, 1:] = -np.inf

    assert_allclose(to_numpy(softmax(backend(values))), special.softmax(values, axis=1), rtol=1e-4, atol=1e-30)
    assert_allclose(to_numpy(logsumexp(backend(values))), special.logsumexp(values, axis=1), rtol=1e-6)
    assert to_numpy(logsumexp(backend(np.full((1, 3), -np.inf))))[0] == -np.inf


@pytest.mark.parametrize("on_host", [True, False])
def test_squared_norms_are_sums_over_the_middle_axis(on_host, backend, rng, monkeypatch):
    monkeypatch.setattr(module, "is_on_host", lambda X: on_host)
    vectors = rng.normal(size=(3, 5, 7))

    assert_allclose(to_numpy(sq_norms(backend(vectors))), (vectors**2).sum(axis=1))

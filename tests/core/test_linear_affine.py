import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiedler.core import linear as module
from fiedler.core.arrays import to_numpy
from fiedler.core.linear import affine_map, prepare_rows


@pytest.mark.parametrize("on_host", [True, False])
def test_affine_map_is_the_printed_formula(on_host, backend, rng, monkeypatch):
    """Also with the columns of zeros that accelerators get."""
    monkeypatch.setattr(module, "is_on_host", lambda Z: on_host)
    Z, matrix, offsets = rng.normal(size=(20, 5)), rng.normal(size=(7, 5)), rng.normal(size=7)

    images = affine_map(backend(matrix), backend(offsets))(prepare_rows(backend(Z)))

    assert_allclose(to_numpy(images), matrix @ Z.T + offsets[:, None], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-20, 1, 1e15])
def test_six_products_of_bfloat16_parts_have_single_precision(scale, rng):
    torch = pytest.importorskip("torch")
    left, right = (torch.asarray(rng.normal(size=(30, 50)).astype(np.float32)) for _ in range(2))
    left = left * scale
    exact = left.double() @ right.double().T

    by_parts = module._parts(left, module.LEFT_PARTS).double() @ module._parts(right, module.RIGHT_PARTS).double().T

    length = torch.linalg.vector_norm(left.double(), dim=1)[:, None] * torch.linalg.vector_norm(right.double(), dim=1)
    assert float(((by_parts - exact).abs() / length).max()) < 2**-26

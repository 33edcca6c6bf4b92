"""Small things that tests share and import by name."""

from __future__ import annotations

import importlib.util
import os

import array_api_strict
import numpy as np
import pytest


def uneven_weights() -> np.ndarray:
    """Unequal degrees: a weighted clique 0-3 with a tail 4-5 (5 a leaf), a triangle 6-8 apart, and 9 isolated."""
    W = np.zeros((10, 10))
    edges = {(0, 1): 1.0, (0, 2): 2.0, (0, 3): 0.5, (1, 2): 1.5, (1, 3): 1.0, (2, 3): 3.0, (3, 4): 0.25, (4, 5): 0.75}
    edges |= {(6, 7): 1.0, (7, 8): 2.0, (6, 8): 0.1}
    for (i, j), w in edges.items():
        W[i, j] = W[j, i] = w
    return W


def _to_torch(array):
    """A tensor, on the device that FIEDLER_TORCH_DEVICE names (the CPU without it)."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.asarray(np.ascontiguousarray(array), device=os.environ.get("FIEDLER_TORCH_DEVICE", "cpu"))


def _to_cupy(array):
    return pytest.importorskip("cupy").asarray(array)


BACKENDS = {"numpy": np.asarray, "strict": array_api_strict.asarray, "torch": _to_torch}
if importlib.util.find_spec("cupy"):
    BACKENDS["cupy"] = _to_cupy

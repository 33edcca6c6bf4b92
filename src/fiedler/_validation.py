"""Checks of data and options: one wording for every error, and the error says what to do."""

from __future__ import annotations

import importlib
import numbers
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import Any, TypeVar

import array_api_compat
import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

T = TypeVar("T")

FLOATS = (np.float64, np.float32)


def choose(table: Mapping[str, T], key: object, *, option: str) -> T:
    """The row of ``table`` named ``key``; the error lists the rows.

    Examples
    --------
    >>> choose({"union": 1, "mutual": 2}, "or", option="symmetrize")
    Traceback (most recent call last):
    ...
    ValueError: symmetrize='or' is not known; choose one of ['union', 'mutual']
    """
    if isinstance(key, str) and key in table:
        return table[key]
    raise ValueError(f"{option}={key!r} is not known{did_you_mean(str(key), table)}; choose one of {list(table)}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A guess at a name that was mistyped, to be put into a sentence; '' without one.

    Examples
    --------
    >>> did_you_mean("digitss", ["digits", "wine"])
    " (did you mean 'digits'?)"
    """
    close = get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few of many names, for a sentence.

    Examples
    --------
    >>> some(["a", "b", "c", "d"])
    'a, b, c, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def check_int(value: object, name: str, *, minimum: int = 1) -> int:
    """``value`` as an int of at least ``minimum``."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= minimum:
        return int(value)
    raise ValueError(f"{name} must be a whole number of at least {minimum}; got {value!r}")


def check_positive(value: object, name: str) -> float:
    """``value`` as a finite float above zero."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < float("inf"):
        return float(value)
    raise ValueError(f"{name} must be a positive number; got {value!r}")


def check_nonnegative(value: Any, name: str, *, or_else: str | None = None) -> float:
    """A finite number of at least zero."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 <= float(value) < float("inf"):
        return float(value)
    raise ValueError(f"{name} must be a nonnegative number{f' or {or_else}' if or_else else ''}; got {value!r}")


def check_share(value: Any, name: str) -> float:
    """``value`` as a share above 0 and at most 1."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) <= 1:
        return float(value)
    raise ValueError(f"{name} must be a share, above 0 and at most 1; got {value!r}")


def check_n_clusters(value: object, n_samples: int) -> int:
    """``n_clusters`` as an int between 1 and the number of samples."""
    n_clusters = check_int(value, "n_clusters")
    if n_clusters > n_samples:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the data holds (n_samples={n_samples}); ask for at most {n_samples}"
        )
    return n_clusters


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or say which extra brings it.

    Examples
    --------
    >>> require("no_such_library", extra="ann", purpose="approximate neighbours")
    Traceback (most recent call last):
    ...
    ImportError: approximate neighbours need 'no_such_library'; install it with: pip install "fiedler[ann]"
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f'{purpose} need {module!r}; install it with: pip install "fiedler[{extra}]"') from error


def is_foreign(X: object) -> bool:
    """Whether ``X`` is an array of another library (torch, CuPy, array-api-strict), to be left where it is."""
    return array_api_compat.is_array_api_obj(X) and not array_api_compat.is_numpy_array(X) and not sp.issparse(X)


def check_data(X: Any, *, estimator: Any = None, reset: bool = True, min_samples: int = 1) -> Any:
    """``X`` as a finite two-dimensional float array: NumPy, CSR, or the array library it came in.

    float32 and float64 stay as they are, integers become float64. With an ``estimator`` its ``n_features_in_`` (and
    feature names) are set, or compared when ``reset`` is false.
    """
    if is_foreign(X):
        return _check_foreign(X, estimator=estimator, reset=reset, min_samples=min_samples)
    options: dict[str, Any] = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_min_samples": min_samples}
    if estimator is None:
        X = check_array(X, input_name="X", **options)
    else:
        X = validate_data(estimator, X, reset=reset, **options)
    X = _canonical(X) if sp.issparse(X) else X
    check_range(X.data if sp.issparse(X) else X)
    return X


def check_dense(X: Any, *, estimator: Any, reset: bool = True, min_samples: int = 1) -> Any:
    """The same for methods that cannot take sparse rows."""
    X = check_data(X, estimator=estimator, reset=reset, min_samples=min_samples)
    if sp.issparse(X):
        name = type(estimator).__name__
        raise ValueError(f"{name} takes dense rows, no sparse ones; reduce those first, for example by TruncatedSVD")
    return X


def _canonical(X: Any) -> sp.csr_array:
    """CSR with sorted indices and no repeated entries; the caller's matrix is left as it is."""
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_range(values: Any) -> None:
    """Refuse numbers whose squares, added up over a row, leave the range of their dtype."""
    xp = array_api_compat.array_namespace(values)
    if values.size == 0 if isinstance(values, np.ndarray) else 0 in values.shape:
        return
    largest, limits = float(xp.max(xp.abs(values))), xp.finfo(values.dtype)
    width = values.shape[-1]
    if largest > (float(limits.max) / (8 * width)) ** 0.5:
        raise ValueError(f"X has entries of size {largest:.1e}, whose squares overflow {values.dtype}; scale X down")
    if 0 < largest < (float(limits.smallest_normal) / float(limits.eps)) ** 0.5:
        raise ValueError(
            f"no entry of X is larger than {largest:.1e} and their squares vanish in {values.dtype}; scale X up"
        )


def _check_foreign(X: Any, *, estimator: Any, reset: bool, min_samples: int) -> Any:
    """:func:`check_data` for arrays that scikit-learn would carry off to NumPy."""
    xp = array_api_compat.array_namespace(X)
    if "sparse" in str(getattr(X, "layout", "")):
        raise ValueError("sparse tensors are taken as graphs, not as data; pass X dense, or as a SciPy CSR matrix")
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (samples, features); got shape {tuple(X.shape)}")
    n_samples, n_features = X.shape
    if n_samples < min_samples or n_features < 1:
        raise ValueError(
            f"X has n_samples={n_samples} and n_features={n_features}; at least {min_samples} and 1 are needed"
        )
    if xp.isdtype(X.dtype, ("integral", "bool")):
        X = xp.astype(X, xp.float64)
    if X.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"X has dtype {X.dtype}; convert it to float32 or float64")
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("Input X contains NaN or infinity; remove or fill those entries first")
    check_range(X)
    if estimator is not None:
        if reset:
            estimator.n_features_in_ = n_features
        elif n_features != estimator.n_features_in_:
            name = type(estimator).__name__
            raise ValueError(
                f"X has {n_features} features, but {name} is expecting {estimator.n_features_in_} features"
            )
    return X


def check_labels(labels: Any, name: str = "labels", *, n_samples: int | None = None) -> np.ndarray:
    """Cluster or class labels on the host as a one-dimensional NumPy array of the expected length."""
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise ValueError(f"{name} must be one label a sample; got a ragged list") from error
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be one label a sample, a non-empty list or 1-D array; got shape {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} contain NaN or infinity; remove those samples or give them a label")
    if n_samples is not None and len(array) != n_samples:
        raise ValueError(f"{name} hold {len(array)} entries, but {n_samples} are needed, one a sample")
    return array


def refuse_equal_rows(X: Any) -> None:
    """Data in which there is nothing to tell apart."""
    if sp.issparse(X):
        equal = (X.max(axis=0) - X.min(axis=0)).nnz == 0
    else:
        equal = bool(array_api_compat.array_namespace(X).all(X[:1, :] == X))
    if equal:
        raise ValueError("all rows of X are equal, so there is nothing to cluster; check the data")

"""Checks of data and parameters, shared by all estimators."""

from __future__ import annotations

import importlib
import numbers
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import Any, TypeVar

import array_api_compat
import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import has_fit_parameter, validate_data

from ._foreign_warnings import ignore_foreign_warnings
from .errors import InputError, MissingDependencyError

T = TypeVar("T")

FLOATS = (np.float64, np.float32)


def import_class(name: str) -> type:
    """Import a class by the names of its module and of itself, as in ``sklearn.cluster:KMeans``.

    Modules in the current folder are found as well.

    Examples
    --------
    >>> import_class("sklearn.cluster:KMeans").__name__
    'KMeans'
    """
    module, _, title = name.partition(":")
    sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), title)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"{name!r} cannot be imported: {error}",
            "write it as package.module:Class",
            code="no_such_class",
            value=name,
        ) from None
    finally:
        sys.path.pop()
    if not (isinstance(found, type) and hasattr(found, "fit")):
        raise InputError(
            f"{name!r} is not a class with a method fit", "give an estimator", code="not_an_estimator", value=name
        )
    return found


def choose(table: Mapping[str, T], key: object, *, option: str, also: Sequence[str] = ()) -> T:
    """Look up an option by name; the error lists the valid names, and ``also`` those that the caller handles.

    Examples
    --------
    >>> choose({"union": 1, "mutual": 2}, "or", option="symmetrize")
    Traceback (most recent call last):
    ...
    fiedler.errors.InputError: symmetrize='or' is not known; choose one of ['union', 'mutual']
    """
    if isinstance(key, str) and key in table:
        return table[key]
    options = [*also, *table]
    raise InputError(
        f"{option}={key!r} is not known{did_you_mean(str(key), options)}",
        f"choose one of {options}",
        code="unknown_option",
        parameter=option,
        value=key,
        options=options,
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the valid name closest to a mistyped one; an empty string if none is close.

    Examples
    --------
    >>> did_you_mean("digitss", ["digits", "wine"])
    " (did you mean 'digits'?)"
    """
    close = get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def first_few(names: Sequence[str], limit: int = 3) -> str:
    """Join the first few of many names for a message.

    Examples
    --------
    >>> first_few(["a", "b", "c", "d"])
    'a, b, c, ...'
    """
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "")


def check_int(value: object, name: str, *, minimum: int = 1, or_else: str | None = None) -> int:
    """Return ``value`` as an int of at least ``minimum``."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= minimum:
        return int(value)
    raise _invalid(name, f"an integer of at least {minimum}{f' or {or_else}' if or_else else ''}", value)


def check_positive(value: object, name: str) -> float:
    """Return ``value`` as a finite float above zero."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < float("inf"):
        return float(value)
    raise _invalid(name, "a positive number", value)


def check_nonnegative(value: Any, name: str, *, or_else: str | None = None) -> float:
    """Return ``value`` as a finite float of at least zero."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 <= float(value) < float("inf"):
        return float(value)
    raise _invalid(name, f"a non-negative number{f' or {or_else}' if or_else else ''}", value)


def check_fraction(value: Any, name: str) -> float:
    """Return ``value`` as a fraction above 0 and at most 1."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) <= 1:
        return float(value)
    raise _invalid(name, "a fraction above 0 and at most 1", value)


def _invalid(name: str, expected: str, value: object) -> InputError:
    return InputError(
        f"{name} must be {expected}; got {value!r}", code="invalid_parameter", parameter=name, value=value
    )


def check_seed(random_state: object) -> np.random.RandomState:
    """Return the generator of ``random_state``: an integer from 0 to 2**32 - 1, a RandomState, or None.

    Examples
    --------
    >>> check_seed(-1)
    Traceback (most recent call last):
    ...
    fiedler.errors.InputError: random_state must be an integer from 0 to 2**32 - 1, a RandomState or None; got -1
    """
    try:
        return check_random_state(random_state)
    except ValueError:
        expected = "an integer from 0 to 2**32 - 1, a RandomState or None"
        raise _invalid("random_state", expected, random_state) from None


def check_n_jobs(value: object) -> int | None:
    """Return ``n_jobs``: a number of threads, a negative number that counts from all processors, or None."""
    if value is None:
        return None
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and value != 0:
        return int(value)
    raise _invalid("n_jobs", "an integer other than 0, or None", value)


def check_n_clusters(value: object, n_samples: int, *, or_else: str | None = None) -> int:
    """Return ``n_clusters`` as an int between 1 and the number of samples."""
    n_clusters = check_int(value, "n_clusters", or_else=or_else)
    if n_clusters > n_samples:
        raise InputError(
            f"n_clusters={n_clusters} is more than the number of rows (n_samples={n_samples})",
            f"choose at most {n_samples}",
            code="n_clusters_too_large",
            parameter="n_clusters",
            value=n_clusters,
            n_samples=n_samples,
        )
    return n_clusters


def import_optional(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or raise an error that names the extra to install.

    Examples
    --------
    >>> import_optional("no_such_library", extra="ann", purpose="approximate neighbours")
    Traceback (most recent call last):
    ...
    fiedler.errors.MissingDependencyError: approximate neighbours need 'no_such_library'; install it with: ...
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose} need {module!r}",
            f'install it with: pip install "fiedler[{extra}]"',
            module=module,
            extra=extra,
        ) from error


def is_foreign(X: object) -> bool:
    """Whether ``X`` is a dense array of a library other than NumPy (torch, CuPy, array-api-strict)."""
    return array_api_compat.is_array_api_obj(X) and not array_api_compat.is_numpy_array(X) and not sp.issparse(X)


def check_data(X: Any, *, estimator: Any = None, reset: bool = True, min_samples: int = 1) -> Any:
    """Validate ``X`` as a finite two-dimensional float array: NumPy, CSR, or the array library it came in.

    float32 and float64 are kept, integers become float64. With an ``estimator`` its ``n_features_in_`` (and feature
    names) are set, or compared when ``reset`` is false.
    """
    if array_api_compat.is_dask_array(X):
        name = "" if estimator is None else f" of {type(estimator).__name__}"
        raise InputError(
            f"this method{name} does not take Dask arrays",
            "pass X.compute() if the rows fit into memory, or a sample of them",
            code="dask_array",
            parameter="X",
        )
    if is_foreign(X):
        return _check_foreign(X, estimator=estimator, reset=reset, min_samples=min_samples)
    options: dict[str, Any] = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_min_samples": min_samples}
    try:
        # scikit-learn finds NaN and infinity by a sum, which may overflow.
        with ignore_foreign_warnings(), np.errstate(over="ignore", invalid="ignore"):
            if estimator is None:
                validated = check_array(X, input_name="X", **options)
            else:
                validated = validate_data(estimator, X, reset=reset, **options)
    except ValueError as error:
        code, fields = _diagnose(X, None if reset else estimator, min_samples)
        raise InputError(str(error), code=code, parameter="X", **fields) from None
    X = _canonical(validated) if sp.issparse(validated) else validated
    check_range(X.data if sp.issparse(X) else X)
    return X


def _diagnose(X: Any, estimator: Any, min_samples: int) -> tuple[str, dict[str, Any]]:
    """Find out which problem of ``X`` scikit-learn reported, for the code and the fields of the error."""
    try:
        array = X.tocsr() if sp.issparse(X) else np.asarray(X)
        values = np.asarray(array.data if sp.issparse(array) else array, dtype=np.float64)
    except (ValueError, TypeError):
        return "wrong_dtype", {}
    if array.ndim != 2:
        return "wrong_shape", {"shape": array.shape}
    n_samples, n_features = array.shape
    if n_samples < min_samples or n_features < 1:
        return "too_few_rows", {"n_samples": n_samples, "n_features": n_features}
    if not np.isfinite(values).all():
        if sp.issparse(array):
            return "not_finite", {}
        row, column = np.argwhere(~np.isfinite(values))[0].tolist()
        return "not_finite", {"row": row, "column": column}
    if estimator is not None and n_features != getattr(estimator, "n_features_in_", n_features):
        return "wrong_n_features", {"n_features": n_features, "expected": estimator.n_features_in_}
    return "invalid_data", {}


def check_dense(X: Any, *, estimator: Any, reset: bool = True, min_samples: int = 1) -> Any:
    """Validate ``X`` for an estimator that does not accept sparse rows."""
    X = check_data(X, estimator=estimator, reset=reset, min_samples=min_samples)
    if sp.issparse(X):
        name = type(estimator).__name__
        raise InputError(
            f"{name} does not accept sparse rows",
            "reduce their dimension first, for example with TruncatedSVD",
            code="sparse_not_supported",
        )
    return X


def _canonical(X: Any) -> sp.csr_array:
    """Return CSR with sorted indices, of 32 bits if they suffice, and no repeated entries, without changing ``X``."""
    X = sp.csr_array(X)
    if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) <= np.iinfo(np.int32).max:
        X = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_range(values: Any, name: str = "X") -> None:
    """Raise an error if squares of the entries, summed over a row, would overflow or vanish in their dtype."""
    largest = check_overflow(values, values, name)
    limits = array_api_compat.array_namespace(values).finfo(values.dtype)
    if 0 < largest < (float(limits.smallest_normal) / float(limits.eps)) ** 0.5:
        raise InputError(
            f"no entry of {name} is larger than {largest:.1e}, so their squares underflow in {values.dtype}",
            f"scale {name} up",
            code="values_too_small",
            largest=largest,
        )


def check_overflow(values: Any, reference: Any, name: str = "X") -> float:
    """Raise an error if squares of the entries would overflow the dtype of ``reference``; return the largest entry."""
    if 0 in values.shape:
        return 0.0
    xp = array_api_compat.array_namespace(values)
    largest, limits = float(xp.max(xp.abs(values))), array_api_compat.array_namespace(reference).finfo(reference.dtype)
    if largest > (float(limits.max) / (8 * values.shape[-1])) ** 0.5:
        raise InputError(
            f"{name} has entries of magnitude {largest:.1e}, whose squares overflow {reference.dtype}",
            f"scale {name} down",
            code="values_too_large",
            largest=largest,
        )
    return largest


def _check_foreign(X: Any, *, estimator: Any, reset: bool, min_samples: int) -> Any:
    """:func:`check_data` for arrays that scikit-learn would convert to NumPy."""
    xp = array_api_compat.array_namespace(X)
    if "sparse" in str(getattr(X, "layout", "")):
        raise InputError(
            "sparse tensors are accepted as graphs, not as data",
            "pass X as a dense tensor or as a SciPy CSR matrix",
            code="sparse_tensor",
        )
    if X.ndim != 2:
        raise InputError(
            f"X must have two dimensions (samples, features); got shape {tuple(X.shape)}", code="wrong_shape"
        )
    n_samples, n_features = X.shape
    if n_samples < min_samples or n_features < 1:
        raise InputError(
            f"X has n_samples={n_samples} and n_features={n_features}; at least {min_samples} and 1 are required",
            code="too_few_rows",
        )
    if xp.isdtype(X.dtype, ("integral", "bool")):
        X = xp.astype(X, xp.float64)
    if X.dtype not in (xp.float32, xp.float64):
        raise InputError(f"X has dtype {X.dtype}", "convert it to float32 or float64", code="wrong_dtype")
    if not bool(xp.all(xp.isfinite(X))):
        raise InputError("Input X contains NaN or infinity", "remove or fill those entries first", code="not_finite")
    check_range(X)
    if estimator is not None:
        if reset:
            estimator.n_features_in_ = n_features
        elif n_features != estimator.n_features_in_:
            name = type(estimator).__name__
            raise InputError(
                f"X has {n_features} features, but {name} is expecting {estimator.n_features_in_} features",
                code="wrong_n_features",
            )
    return X


def check_labels(labels: Any, name: str = "labels", *, n_samples: int | None = None) -> np.ndarray:
    """Validate labels as a one-dimensional NumPy array of the expected length."""
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise InputError(
            f"{name} must have one label per sample; got a ragged list", code="wrong_shape", parameter=name
        ) from error
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            f"{name} must be a non-empty 1-D array with one label per sample; got shape {array.shape}",
            code="wrong_shape",
            parameter=name,
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            f"{name} contains NaN or infinity",
            "remove those samples or give them a label",
            code="not_finite",
            parameter=name,
        )
    if n_samples is not None and len(array) != n_samples:
        raise InputError(
            f"{name} has {len(array)} entries, but {n_samples} are required, one per sample",
            code="wrong_length",
            parameter=name,
        )
    return array


def check_rows_differ(X: Any) -> None:
    """Raise an error if all rows are equal."""
    if sp.issparse(X):
        equal = (X.max(axis=0) - X.min(axis=0)).nnz == 0
    else:
        equal = bool(array_api_compat.array_namespace(X).all(X[:1, :] == X))
    if equal:
        raise InputError("all rows of X are equal, so there is nothing to cluster", "check the data", code="equal_rows")


def check_takes_weights(estimator: Any) -> None:
    """Raise an error if ``fit`` of an estimator has no ``sample_weight``."""
    if not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(
            f"{type(estimator).__name__} does not weigh rows",
            "leave sample_weight out, or choose another estimator",
            code="weights_not_supported",
            parameter="sample_weight",
        )

"""Checks of data and parameters, shared by all estimators."""

from __future__ import annotations

import importlib
import inspect
import math
import numbers
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import array_api_compat
import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import has_fit_parameter, validate_data

from ._foreign_warnings import ignore_foreign_warnings
from .errors import InputError, InputTypeError, MissingDependencyError, shorten, shown

P = ParamSpec("P")
T = TypeVar("T")

FLOATS = (np.float64, np.float32)
MAX_JOBS = 64  # threads on a machine of fewer processors
N_TRIED = 100  # entries that tell whether rows are texts
MAX_REASON = 200  # characters of another library's error in a message


def import_class(name: str) -> type:
    """Import a class by name, such as ``sklearn.cluster:KMeans``, also from a module in the current folder."""
    module, _, title = name.partition(":")
    sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), title)
    except (ImportError, AttributeError, ValueError) as error:
        problem = f"{name!r} cannot be imported: {error}"
        raise InputError(problem, "write it as package.module:Class", code="no_such_class", value=name) from None
    finally:
        sys.path.pop()
    if not (isinstance(found, type) and hasattr(found, "fit")):
        problem = f"{name!r} is not a class with a method fit"
        raise InputError(problem, "give an estimator", code="not_an_estimator", value=name)
    return found


def choose(table: Mapping[str, T], key: object, *, option: str, also: Sequence[str] = ()) -> T:
    """Look up an option by name; the error lists the valid names, and ``also`` those that the caller handles."""
    if isinstance(key, str) and key in table:
        return table[key]
    raise _unknown_option(option, key, [*also, *table])


def _unknown_option(option: str, value: object, names: list[str], or_else: str = "") -> InputError:
    problem = f"{option}={shown(value)} is not known{did_you_mean(value, names)}"
    hint = f"choose one of {names}{or_else}"
    return InputError(problem, hint, code="unknown_option", parameter=option, value=value, options=names)


ALIASES = {"k": "n_clusters", "seed": "random_state", "weights": "sample_weight", "labels": "y", "pairs": "constraints"}


def suggest_parameters(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function: the error for an unknown keyword names the parameter that is probably meant."""
    known = inspect.signature(function).parameters

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known:
                hint = did_you_mean(ALIASES.get(name, name), known)
                problem = f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}"
                raise InputTypeError(problem, code="unknown_parameter", parameter=name, options=list(known))
        return function(*args, **kwargs)

    return call


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Suggest the valid name closest to a mistyped one; an empty string if none is close, or if it is not a string."""
    close = get_close_matches(name, list(known), n=1) if isinstance(name, str) else []
    return f" (did you mean {close[0]!r}?)" if close else ""


def first_few(names: Sequence[str], limit: int = 3) -> str:
    """Join the first few of many names for a message.

    Examples
    --------
    >>> first_few(["a", "b", "c", "d"])
    'a, b, c, ...'
    """
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "")


def check_bool(value: object, name: str) -> bool:
    """Return ``value`` as a bool."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise _invalid(name, "True or False", value)


def check_int(value: Any, name: str, *, minimum: int = 1, or_else: str | None = None) -> int:
    """Return ``value`` as an int of at least ``minimum`` that fits into 64 bits."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and minimum <= int(value) < 2**63:
        return int(value)
    is_too_large = isinstance(value, numbers.Integral) and int(value) >= 2**63
    expected = f"from {minimum} to 2**63 - 1" if is_too_large else f"of at least {minimum}"
    raise _invalid(name, f"an integer {expected}{f' or {or_else}' if or_else else ''}", value)


def check_positive(value: object, name: str) -> float:
    """Return ``value`` as a finite float above zero."""
    number = _finite(value)
    if number is not None and number > 0:
        return number
    raise _invalid(name, "a positive number", value)


def check_nonnegative(value: Any, name: str, *, or_else: str | None = None) -> float:
    """Return ``value`` as a finite float of at least zero."""
    number = _finite(value)
    if number is not None and number >= 0:
        return number
    raise _invalid(name, f"a non-negative number{f' or {or_else}' if or_else else ''}", value)


def check_fraction(value: Any, name: str) -> float:
    """Return ``value`` as a fraction above 0 and at most 1."""
    number = _finite(value)
    if number is not None and 0 < number <= 1:
        return number
    raise _invalid(name, "a fraction above 0 and at most 1", value)


def _finite(value: object) -> float | None:
    """Return a number as a float; None for anything else, infinity and numbers that are too large."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _invalid(name: str, expected: str, value: object) -> InputError:
    problem = f"{name} must be {expected}; got {shown(value)}"
    return InputError(problem, code="invalid_parameter", parameter=name, value=value)


def check_seed(random_state: object, name: str = "random_state") -> np.random.RandomState:
    """Return the generator of ``random_state``: an integer from 0 to 2**32 - 1, a RandomState, or None."""
    is_seed = isinstance(random_state, numbers.Integral) and 0 <= int(random_state) < 2**32
    if is_seed or random_state is None or random_state is np.random or isinstance(random_state, np.random.RandomState):
        return check_random_state(random_state)
    raise _invalid(name, "an integer from 0 to 2**32 - 1, a RandomState or None", random_state)


def check_n_jobs(value: object, name: str = "n_jobs") -> int | None:
    """Return ``n_jobs``, an integer other than 0 or None, limited since more threads only take time to start."""
    if value is None:
        return None
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and value != 0:
        most = max(MAX_JOBS, os.cpu_count() or 1)
        return max(-most, min(int(value), most))
    raise _invalid(name, "an integer other than 0, or None", value)


def check_n_clusters(value: object, n_samples: int, *, or_else: str | None = None) -> int:
    """Return ``n_clusters`` as an int between 1 and the number of samples."""
    n_clusters = check_int(value, "n_clusters", or_else=or_else)
    if n_clusters > n_samples:
        problem = f"n_clusters={n_clusters} is more than the number of rows (n_samples={n_samples})"
        hint = f"choose at most {n_samples}"
        raise InputError(
            problem, hint, code="n_clusters_too_large", parameter="n_clusters", value=n_clusters, n_samples=n_samples
        )
    return n_clusters


# Checks of parameters of an estimator: functions of a value and the name of its parameter that raise an error if the
# value is not allowed, such as most of the functions above. A class declares those of its parameters as
# `_parameter_checks`, which `fit` and `load` apply.

Check = Callable[[Any, str], Any]


def integer(minimum: int = 1) -> Check:
    """Accept an integer of at least ``minimum``."""
    return lambda value, name: check_int(value, name, minimum=minimum)


def none_or(check: Check) -> Check:
    """Accept None, or what another check accepts."""
    return lambda value, name: None if value is None else check(value, name)


def one_of(names: Collection[str], otherwise: Check | None = None, or_else: str = "") -> Check:
    """Accept some names and, if it is not a string, what another check accepts; ``or_else`` describes it in errors."""

    def check(value: object, name: str) -> object:
        if isinstance(value, str) and value in names:
            return value
        if otherwise is not None and not isinstance(value, str):
            return otherwise(value, name)
        raise _unknown_option(name, value, list(names), or_else)

    return check


def start_from(names: Collection[str]) -> Check:
    """Accept the names of some starts, and arrays, which are checked with the rows."""
    return one_of(names, lambda array, _: array, ", or pass labels or memberships")


def validate_parameters(estimator: Any) -> None:
    """Raise an error if a parameter of an estimator has a value that its class does not allow."""
    for name, check in getattr(estimator, "_parameter_checks", {}).items():
        check(getattr(estimator, name), name)


def import_optional(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose} need {module!r}", f'install it with: pip install "fiedler[{extra}]"', module=module, extra=extra
        ) from error


def is_sparse_tensor(X: object) -> bool:
    """Whether ``X`` is a sparse tensor of torch."""
    return "sparse" in str(getattr(X, "layout", ""))


def is_foreign(X: object) -> bool:
    """Whether ``X`` is a dense array of a library other than NumPy (torch, CuPy, array-api-strict)."""
    return array_api_compat.is_array_api_obj(X) and not array_api_compat.is_numpy_array(X) and not sp.issparse(X)


def check_data(X: Any, *, estimator: Any = None, reset: bool = True, min_samples: int = 1) -> Any:
    """Validate ``X`` as a finite two-dimensional float array: NumPy, CSR, or the array library it came in."""
    # float32 and float64 are kept, integers become float64. With an ``estimator`` its ``n_features_in_`` (and feature
    # names) are set, or compared when ``reset`` is false.
    if array_api_compat.is_dask_array(X):
        name = "" if estimator is None else f" of {type(estimator).__name__}"
        problem = f"this method{name} does not take Dask arrays"
        hint = "pass X.compute() if the rows fit into memory, or a sample of them"
        raise InputError(problem, hint, code="dask_array", parameter="X")
    if np.ma.is_masked(X):
        raise InputError("X has masked entries", "fill or remove them first", code="masked_entries", parameter="X")
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
    except (ValueError, TypeError, OverflowError) as error:
        raise _explain(error, X, None if reset else estimator, min_samples) from None
    X = _canonical(validated) if sp.issparse(validated) else validated
    check_range(X.data if sp.issparse(X) else X)
    return X


def _explain(error: Exception, X: Any, estimator: Any, min_samples: int) -> InputError | InputTypeError:
    """Say in one sentence what is wrong with ``X``, where scikit-learn or NumPy did not, with a code and fields."""
    array: Any = (X.tocsr() if X.ndim == 2 else X.tocoo()) if sp.issparse(X) else as_array(X)
    if array is not None and array.dtype.kind == "c":
        problem, advice = f"Complex data not supported: X has dtype {array.dtype}", "use real numbers"
        return InputError(problem, advice, code="wrong_dtype", parameter="X")
    values = as_array(array.data if sp.issparse(array) else array, np.float64)
    if array is None or values is None:
        if hasattr(X, "isna") and (missing := np.asarray(X.isna())).any():  # the missing values of pandas' own types
            return _not_finite(missing, np.where(missing, np.nan, 0.0))
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        problem = f"X cannot be converted to an array of numbers ({shorten(str(error), MAX_REASON)})"
        is_words = array is not None and array.size and all(isinstance(one, str) for one in array.ravel()[:N_TRIED])
        texts = "turn texts into rows by fiedler.text.DocumentVectorizer().fit_transform(texts)"
        hint = (
            "" if not is_words else texts if array.ndim == 1 else "pass a data frame through fiedler.table.TableEncoder"
        )
        return kind(problem, hint, code="wrong_dtype", parameter="X")
    if array.ndim != 2:
        problem = f"X must have two dimensions (samples, features); got shape {array.shape}"
        if array.ndim == 1:
            problem += (
                ". Reshape your data: X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single sample"
            )
        hint = "make each image or matrix a row: X.reshape(len(X), -1)" if array.ndim > 2 else ""
        return InputError(problem, hint, code="wrong_shape", parameter="X", shape=array.shape)
    n_samples, n_features = array.shape
    if n_samples < min_samples or n_features < 1:
        found, minimum = (n_samples, min_samples) if n_samples < min_samples else (n_features, 1)
        problem = (
            f"Found array with {found} {'sample' if n_samples < min_samples else 'feature'}(s) (shape={array.shape}) "
            f"while a minimum of {minimum} is required"
        )
        hint = f"pass at least {min_samples} rows and one column"
        return InputError(problem, hint, code="too_few_rows", parameter="X", n_samples=n_samples, n_features=n_features)
    if not np.isfinite(values).all():
        return _not_finite(array, values)
    if estimator is not None and n_features != getattr(estimator, "n_features_in_", n_features):
        sizes = {"n_features": n_features, "expected": estimator.n_features_in_}
        return InputError(str(error), code="wrong_n_features", parameter="X", **sizes)
    return InputError(str(error), code="invalid_data", parameter="X")


def as_array(values: Any, dtype: Any = None) -> np.ndarray | None:
    """Convert values to an array, or return None if they cannot be converted."""
    try:
        with np.errstate(over="ignore"):  # of numbers in extended precision
            return np.asarray(values, dtype=dtype)
    except (ValueError, TypeError, OverflowError):
        return None


def _not_finite(array: Any, values: np.ndarray) -> InputError:
    """Return the error of NaN or infinity, with the place of the first one."""
    first = np.argwhere(~np.isfinite(values))[0]
    entries = array.tocoo() if sp.issparse(array) else None
    row, column = (int(i) for i in (first if entries is None else (entries.row[first[0]], entries.col[first[0]])))
    problem = f"X contains {'NaN' if np.isnan(values[tuple(first)]) else 'infinity'} in row {row}, column {column}"
    hint = "remove or fill such entries first"
    return InputError(problem, hint, code="not_finite", parameter="X", row=row, column=column)


def check_dense(X: Any, *, estimator: Any, reset: bool = True, min_samples: int = 1) -> Any:
    """Validate ``X`` for an estimator that does not accept sparse rows."""
    X = check_data(X, estimator=estimator, reset=reset, min_samples=min_samples)
    if sp.issparse(X):
        name = type(estimator).__name__
        problem = f"{name} does not accept sparse rows"
        hint = "reduce their dimension first, for example with TruncatedSVD"
        raise InputError(problem, hint, code="sparse_not_supported")
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
        problem = f"no entry of {name} is larger than {largest:.1e}, so their squares underflow in {values.dtype}"
        raise InputError(problem, f"scale {name} up", code="values_too_small", largest=largest)


def check_overflow(values: Any, reference: Any, name: str = "X") -> float:
    """Raise an error if squares of the entries would overflow the dtype of ``reference``; return the largest entry."""
    if 0 in values.shape:
        return 0.0
    xp = array_api_compat.array_namespace(values)
    largest, limits = float(xp.max(xp.abs(values))), array_api_compat.array_namespace(reference).finfo(reference.dtype)
    if largest > (float(limits.max) / (8 * values.shape[-1])) ** 0.5:
        problem = f"{name} has entries of magnitude {largest:.1e}, whose squares overflow {reference.dtype}"
        raise InputError(problem, f"scale {name} down", code="values_too_large", largest=largest)
    return largest


def _check_foreign(X: Any, *, estimator: Any, reset: bool, min_samples: int) -> Any:
    """:func:`check_data` for arrays that scikit-learn would convert to NumPy."""
    xp = array_api_compat.array_namespace(X)
    if is_sparse_tensor(X):
        problem = "sparse tensors are accepted as graphs, not as data"
        raise InputError(problem, "pass X as a dense tensor or as a SciPy CSR matrix", code="sparse_tensor")
    if X.ndim != 2:
        problem = f"X must have two dimensions (samples, features); got shape {tuple(X.shape)}"
        raise InputError(problem, code="wrong_shape")
    n_samples, n_features = X.shape
    if n_samples < min_samples or n_features < 1:
        problem = f"X has n_samples={n_samples} and n_features={n_features}; at least {min_samples} and 1 are required"
        raise InputError(problem, code="too_few_rows")
    if getattr(X, "requires_grad", False):
        X = X.detach()
    if xp.isdtype(X.dtype, ("integral", "bool")):
        X = xp.astype(X, xp.float64)
    if X.dtype not in (xp.float32, xp.float64):
        raise InputError(f"X has dtype {X.dtype}", "convert it to float32 or float64", code="wrong_dtype")
    if not bool(xp.all(xp.isfinite(X))):
        raise InputError("X contains NaN or infinity", "remove or fill those entries first", code="not_finite")
    check_range(X)
    if estimator is not None:
        if reset:
            estimator.n_features_in_ = n_features
        elif n_features != estimator.n_features_in_:
            name = type(estimator).__name__
            problem = f"X has {n_features} features, but {name} is expecting {estimator.n_features_in_} features"
            raise InputError(problem, code="wrong_n_features")
    return X


def check_labels(labels: Any, name: str = "labels", *, n_samples: int | None = None) -> np.ndarray:
    """Validate labels as a one-dimensional NumPy array of the expected length."""
    try:
        array = np.asarray(labels)
    except (ValueError, TypeError, RuntimeError):  # a ragged list, or a tensor that NumPy cannot read
        problem = f"{name} must have one label per sample; got {shown(labels)}"
        raise InputError(problem, code="wrong_shape", parameter=name) from None
    if array.ndim != 1 or array.size == 0:
        problem = f"{name} must be a non-empty 1-D array with one label per sample; got shape {array.shape}"
        raise InputError(problem, code="wrong_shape", parameter=name)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        problem = f"{name} contains NaN or infinity"
        raise InputError(problem, "remove those samples or give them a label", code="not_finite", parameter=name)
    if n_samples is not None and len(array) != n_samples:
        problem = f"{name} has {len(array)} entries, but {n_samples} are required, one per sample"
        raise InputError(problem, code="wrong_length", parameter=name)
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
        problem = f"{type(estimator).__name__} does not weigh rows"
        hint = "leave sample_weight out, or choose another estimator"
        raise InputError(problem, hint, code="weights_not_supported", parameter="sample_weight")

"""Run a call under watch: it returns or raises an error of ours, and changes nothing but its own result."""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn

import fiedler
from fiedler.core.arrays import to_numpy
from fiedler.errors import FiedlerError, FiedlerWarning

SOURCE = Path(fiedler.__file__).parent
OF_VERSIONS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)  # depend on the libraries' versions

# scikit-learn's own: a frame in `fit` or `predict` and an array in the other; labels in a column
CONVENTIONS = ("feature names, but", "A column-vector y was passed")


class LawBroken(AssertionError):
    """A law does not hold; ``kind`` is the same for all cases of one defect."""

    def __init__(self, kind: str, details: str = "") -> None:
        super().__init__(f"{kind}: {details}" if details else kind)
        self.kind = kind


@dataclass
class Outcome:
    """What a call returned, or the error that it raised, and its warnings."""

    value: Any = None
    error: FiedlerError | None = None
    warnings: list[Any] = field(default_factory=list)


def require(condition: Any, kind: str, details: Any = "") -> None:
    """Raise LawBroken unless the condition holds."""
    if not condition:
        raise LawBroken(kind, str(details)[:500])


def watch(call: Callable[[], Any], *inputs: Any) -> Outcome:
    """Call, and check that inputs, global state and warnings are as promised."""
    before, state = [fingerprint(one) for one in inputs], global_state()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        outcome = _call(call)
        require(list(warnings.filters) == filters, "warnings.filters changed")
    _check_state(state)
    require([fingerprint(one) for one in inputs] == before, "an input was changed")
    outcome.warnings = [one.message for one in caught if isinstance(one.message, FiedlerWarning)]
    for one in caught:
        conventional = any(phrase in str(one.message) for phrase in CONVENTIONS)
        if not conventional and not isinstance(one.message, (FiedlerWarning, *OF_VERSIONS)):
            where = Path(one.filename).name
            raise LawBroken(f"{type(one.message).__name__} from {where}", f"{one.message} (line {one.lineno})")
    return outcome


def returns(call: Callable[[], Any], *inputs: Any) -> Any:
    """Call under watch where no error is allowed, and return the value."""
    outcome = watch(call, *inputs)
    if outcome.error is not None:
        raise LawBroken(f"error {outcome.error.code}", str(outcome.error)) from outcome.error
    return outcome.value


def _call(call: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(value=call())
    except FiedlerError as error:
        require(error.problem.strip(), "an error without a sentence", repr(error))
        return Outcome(error=error)
    except LawBroken:
        raise
    except Exception as error:
        raise LawBroken(f"{type(error).__name__} in {_place(error)}", str(error)) from error


def _place(error: BaseException) -> str:
    """Return the innermost function of the library in the traceback."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(SOURCE)
    ]
    if not frames:
        return "no function of the library"
    return f"{Path(frames[-1].filename).relative_to(SOURCE)}:{frames[-1].name}"


def fingerprint(value: Any) -> Any:
    """Return bytes that change when the value does."""
    if sp.issparse(value):
        parts = [getattr(value, name, None) for name in ("data", "indices", "indptr", "coords", "rows")]
        return value.format, value.shape, str(value.dtype), pickle.dumps(parts)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.strides, bytes(value.flags.writeable), pickle.dumps(value.tolist())
    if hasattr(value, "__array_namespace__") or type(value).__module__.startswith("torch"):
        return to_numpy(value).tobytes()
    if hasattr(value, "to_dict"):
        return pickle.dumps(value.to_dict())
    return pickle.dumps(value)


def global_state() -> dict[str, Any]:
    """Return what a library must leave alone in a process."""
    state = {
        "np.random": pickle.dumps(np.random.get_state(legacy=False)),  # noqa: NPY002
        "random": random.getstate(),
        "np.geterr": np.geterr(),
        "os.environ": dict(os.environ),
        "the working directory": os.getcwd(),
        "scikit-learn's configuration": sklearn.get_config(),
        "sys.path": list(sys.path),
        "print options": np.get_printoptions(),
        "the handler of interrupts": signal.getsignal(signal.SIGINT),
        "the number of threads": threading.active_count(),
    }
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        state["torch's generator"] = torch.get_rng_state().numpy().tobytes()
        state["torch's options"] = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads())
    return state


def _check_state(before: dict[str, Any]) -> None:
    after = global_state()
    for name, value in before.items():
        require(after[name] == value, f"{name} changed")

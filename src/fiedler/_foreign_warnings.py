"""Ignore warnings of other libraries that repeat what the result reports, and keep the filters of :mod:`warnings`.

:class:`warnings.catch_warnings`, which scikit-learn uses whenever it validates an array, saves and restores a list that
all threads share. If two threads overlap, the one that leaves last restores what the other had changed, and the filters
of the program stay changed. Here the filters are remembered when the first thread enters and restored when the last one
leaves; changes that the program has made itself in between are kept.
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from numpy.exceptions import ComplexWarning, VisibleDeprecationWarning
from sklearn.exceptions import ConvergenceWarning


class Filter(NamedTuple):
    """A filter, with the regular expressions of the message and of the module that the warning names."""

    action: str
    message: str
    category: type[Warning]
    module: str
    line: int = 0


IGNORED = (
    # k-means with fewer clusters than requested, NMF and support vector machines that stopped early; by their messages,
    # since a warning of an estimator of ours names scikit-learn too if a pipeline or a search has called it
    Filter(
        "ignore",
        "Number of distinct clusters|Maximum number of iterations|Solver terminated early|Liblinear failed",
        ConvergenceWarning,
        r"sklearn\.",
    ),
    # LOBPCG, which names its caller: convergence is judged by the residuals
    Filter("ignore", "", UserWarning, r"scipy\.sparse\.linalg\.|fiedler\.core\.(eigen|solvers)$"),
    # the "beta" CSR layout and unchecked tensors of torch
    Filter("ignore", r"(?s).*sparse", UserWarning, r"torch\.|fiedler\."),
)
TEMPORARY = {  # what may be left of these and of scikit-learn's own filters
    *IGNORED,
    Filter("error", "", ComplexWarning, ""),
    Filter("error", "", VisibleDeprecationWarning, ""),
}


class _State:
    """The threads inside, and the filters before the first of them entered: the list itself and its content."""

    lock = threading.Lock()
    n_inside = 0
    filters: Any = None
    content: tuple[Any, ...] = ()


@contextmanager
def ignore_foreign_warnings() -> Iterator[None]:
    """Ignore the warnings in `IGNORED` in the block, and leave the filters as they were."""
    if getattr(sys.flags, "context_aware_warnings", False):  # Python 3.14: each thread has its own filters
        with warnings.catch_warnings():
            for one in IGNORED:
                warnings.filterwarnings(one.action, one.message, one.category, one.module)  # type: ignore[arg-type]
            yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    with _State.lock:
        _State.n_inside += 1
        if _State.n_inside > 1:
            return
        _State.filters, _State.content = warnings.filters, tuple(warnings.filters)
        _State.filters[:0] = [
            (one.action, re.compile(one.message, re.IGNORECASE), one.category, re.compile(one.module), one.line)
            for one in IGNORED
        ]


def _leave() -> None:
    with _State.lock:
        _State.n_inside -= 1
        if _State.n_inside > 0:
            return
        before = [_described(entry) for entry in _State.content]
        added = TEMPORARY.difference(before)
        current: Any = warnings.filters
        kept = [entry for entry in current if _described(entry) not in added]
        if [_described(entry) for entry in kept] == before:
            _State.filters[:] = _State.content
            warnings.filters = _State.filters
        else:  # the program has changed them meanwhile
            current[:] = kept


def _described(entry: Any) -> Filter:
    """Return an entry of ``warnings.filters`` in a form that can be compared: patterns are compiled, texts or None."""
    action, message, category, module, line = entry
    return Filter(
        action, getattr(message, "pattern", message) or "", category, getattr(module, "pattern", module) or "", line
    )

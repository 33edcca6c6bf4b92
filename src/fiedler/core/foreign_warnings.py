"""Ignore warnings of other libraries that say what a result says as well, also while several threads fit.

:class:`warnings.catch_warnings` saves and restores a list that all threads share: if two threads overlap, the second
restores what the first had changed, and the filters of the program stay changed. Here the filters are added when the
first thread enters and removed, one by one, when the last one leaves.
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning

# Regular expressions of the message and of the module that the warning names, and the category.
IGNORED: tuple[tuple[str, str, type[Warning]], ...] = (
    # k-means with fewer clusters than requested, NMF and support vector machines that stopped early
    ("", r"sklearn\.", ConvergenceWarning),
    # LOBPCG, which names its caller: convergence is judged by the residuals
    ("", r"scipy\.sparse\.linalg\.|fiedler\.core\.(eigen|solvers)$", UserWarning),
    # the "beta" CSR layout and unchecked tensors of torch
    (r"(?s).*sparse", r"torch\.|fiedler\.", UserWarning),
    # loadmat, whose type of sparse matrices will change
    ("", r"scipy\.io\.|fiedler\.datasets\.parse$", DeprecationWarning),
)
FILTERS: tuple[Any, ...] = tuple(  # as `warnings.filters` lists them
    ("ignore", re.compile(message, re.IGNORECASE), category, re.compile(module), 0)
    for message, module, category in IGNORED
)
_lock = threading.Lock()
_n_active = 0


@contextmanager
def ignore_foreign_warnings() -> Iterator[None]:
    """Ignore the warnings in `IGNORED` in the block, and leave the filters as they were.

    Examples
    --------
    >>> before = list(warnings.filters)
    >>> with ignore_foreign_warnings():
    ...     pass
    >>> warnings.filters == before
    True
    """
    if getattr(sys.flags, "context_aware_warnings", False):  # Python 3.14: each thread has its own filters
        with warnings.catch_warnings():
            for message, module, category in IGNORED:
                warnings.filterwarnings("ignore", message, category, module)
            yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _n_active
    with _lock:
        if _n_active == 0:
            filters: Any = warnings.filters
            filters[:0] = FILTERS
        _n_active += 1


def _leave() -> None:
    global _n_active
    with _lock:
        _n_active -= 1
        if _n_active == 0:
            filters: Any = warnings.filters
            filters[:] = [entry for entry in filters if not any(entry is own for own in FILTERS)]

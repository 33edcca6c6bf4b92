"""`restore_on_failure`, around every fit: an estimator is fitted, or it is as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def restore_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the block raises, so that a failed fit leaves the model as it was.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> model = BaseEstimator()
    >>> try:
    ...     with restore_on_failure(model):
    ...         model.labels_ = [0, 1]
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     print(hasattr(model, "labels_"))
    False
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__ = before  # in one step, so that a second interrupt cannot come between
        raise

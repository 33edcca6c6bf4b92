"""Exceptions and warnings with a message, a code and fields.

Everything that fiedler raises on purpose is a :class:`FiedlerError` and also the built-in exception that Python
programmers expect (``ValueError``, ``TypeError``, ``FileNotFoundError``, ``ImportError``). Each has

- ``problem``, what is wrong, and ``hint``, what to do about it; ``str(error)`` is both in one sentence;
- ``code``, a stable name of the problem, such as ``"n_clusters_too_large"``;
- ``fields``, the facts of this case, such as ``{"parameter": "n_clusters", "value": 12, "n_samples": 10}``. The names
  ``parameter``, ``value``, ``file``, ``row``, ``line`` and ``column`` mean the same in every error.

Another front end, such as the command line, builds its own message from the code and fields, without parsing
the text.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sklearn.exceptions import ConvergenceWarning, NotFittedError

PACKAGES = {"fiedler", "fiedler_papers", "sklearn"}  # whose lines warnings do not point to
MAX_SHOWN = 80  # characters of a value in a message

__all__ = [
    "DataNotFoundError",
    "DownloadError",
    "FiedlerError",
    "FiedlerWarning",
    "FileFormatError",
    "InputError",
    "InputTypeError",
    "MissingDependencyError",
    "NoKnownTermsWarning",
    "NotConvergedWarning",
    "NotEnoughMemoryError",
    "NotFittedError",
    "SchedulerError",
    "SingularCovarianceError",
    "StorageError",
]


class _Message(Exception):
    """A sentence in two parts, a code and the fields of one case."""

    default_code = "error"

    def __init__(self, problem: str, hint: str = "", *, code: str | None = None, **fields: Any) -> None:
        super().__init__(f"{problem}; {hint}" if hint else problem)
        self.problem, self.hint = problem, hint
        self.code = code or self.default_code
        self.fields = fields

    def __repr__(self) -> str:
        fields = "".join(f", {name}={value!r}" for name, value in self.fields.items())
        return f"{type(self).__name__}({str(self)!r}, code={self.code!r}{fields})"


class FiedlerError(_Message):
    """Base class of all errors that fiedler raises on purpose.

    Parameters
    ----------
    problem : str
        What is wrong.
    hint : str, default=''
        What to do about it.
    code : str, optional
        A stable name of the problem; by default that of the class.
    **fields
        The facts of this case.

    Examples
    --------
    >>> from fiedler.errors import FiedlerError, InputError
    >>> try:
    ...     raise InputError("n_clusters=12 exceeds the 10 rows", "choose at most 10", code="n_clusters_too_large")
    ... except FiedlerError as error:
    ...     print(error)
    ...     print(error.code)
    n_clusters=12 exceeds the 10 rows; choose at most 10
    n_clusters_too_large
    """


class InputError(FiedlerError, ValueError):
    """Data or a parameter has a value that cannot be used."""

    default_code = "invalid_input"


class InputTypeError(FiedlerError, TypeError):
    """Data or a parameter has a type that cannot be used."""

    default_code = "invalid_type"


class FileFormatError(InputError):
    """The contents of a file are not in the expected format."""

    default_code = "invalid_file"


class DataNotFoundError(FiedlerError, FileNotFoundError):
    """A file, folder or data set does not exist."""

    default_code = "not_found"


class DownloadError(FiedlerError, OSError):
    """A data set could not be downloaded."""

    default_code = "download_failed"


class MissingDependencyError(FiedlerError, ImportError):
    """An optional library is not installed."""

    default_code = "missing_dependency"


class NotEnoughMemoryError(FiedlerError, MemoryError):
    """A computation or a file needs more memory than is available."""

    default_code = "too_little_memory"


class StorageError(FiedlerError, OSError):
    """A block of rows cannot be written to or read from the work directory."""

    default_code = "storage_failed"


class SchedulerError(FiedlerError, OSError):
    """A Dask scheduler or its workers cannot be used."""

    default_code = "scheduler_failed"


class SingularCovarianceError(InputError):
    """A covariance matrix is not positive definite."""

    default_code = "singular_covariance"


def not_enough_memory_to_read(file: str) -> NotEnoughMemoryError:
    """Return the error for a file that is too large to be read, which is no evidence of damage."""
    hint = "close other programs or use a larger machine; if the file is small, it is damaged"
    return NotEnoughMemoryError(f"there is not enough memory to read {file!r}", hint, file=file)


class FiedlerWarning(_Message, UserWarning):
    """Base class of all warnings that fiedler emits; structured like :class:`FiedlerError`."""

    default_code = "warning"


class NotConvergedWarning(FiedlerWarning, ConvergenceWarning):
    """An iteration stopped before it converged."""

    default_code = "not_converged"


class NoKnownTermsWarning(FiedlerWarning):
    """Documents contain none of the known terms and become rows of zeros."""

    default_code = "no_known_terms"


_IGNORED: ContextVar[tuple[type[Warning], ...]] = ContextVar("fiedler_ignored_warnings", default=())


@contextmanager
def ignore_warnings(*categories: type[Warning]) -> Iterator[None]:
    """Drop fiedler's warnings of some categories in the block, without effect on other threads or global filters."""
    token = _IGNORED.set((*_IGNORED.get(), *categories))
    try:
        yield
    finally:
        _IGNORED.reset(token)


def ignored_warnings() -> tuple[type[Warning], ...]:
    """Return the categories that this thread ignores, which it hands to the threads that work for it."""
    return _IGNORED.get()


def warn(
    problem: str,
    hint: str = "",
    *,
    code: str | None = None,
    category: type[FiedlerWarning] = FiedlerWarning,
    stacklevel: int = 2,
    **fields: Any,
) -> None:
    """Emit a structured warning that points to the line of the user's call; dropped within :func:`ignore_warnings`."""
    # That is the caller at ``stacklevel``, as in :func:`warnings.warn`, or the first one above it outside of fiedler
    # and scikit-learn, which wraps methods and calls the steps of pipelines.
    if issubclass(category, ignored_warnings()):
        return
    level, frame = stacklevel + 1, sys._getframe(min(stacklevel, _depth()))
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(category(problem, hint, code=code, **fields), stacklevel=level)


def _depth() -> int:
    """Return how many callers the caller of this function has."""
    depth, frame = -1, sys._getframe(1)
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    return depth


def shown(value: object) -> str:
    """Return how a value is written in a message: on one line, of at most 80 characters."""
    try:
        return shorten(repr(value), MAX_SHOWN)
    except Exception:  # of the object's own method, or an integer of more digits than Python writes
        return f"a value of type {type(value).__name__}"


def shorten(text: str, n_characters: int) -> str:
    """Return a text on one line, cut off after so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= n_characters else f"{line[: n_characters - 3]}..."

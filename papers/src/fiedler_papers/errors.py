"""Errors of runs."""

from __future__ import annotations

from fiedler.errors import FiedlerError


class RunError(FiedlerError, RuntimeError):
    """A run could not be carried out."""

    default_code = "run_failed"

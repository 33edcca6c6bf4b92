"""Which versions of what are at work."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from ._version import __version__

REQUIRED = ("numpy", "scipy", "scikit-learn")


def version_of(package: str) -> str | None:
    """The version of an installed package, by the name that pip knows it by; None if it is not there.

    Examples
    --------
    >>> version_of("a-package-that-nobody-wrote") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def versions(more: Iterable[str] = ()) -> dict[str, str]:
    """Of fiedler, Python, what it requires and ``more`` packages, those left out that are not installed.

    Examples
    --------
    >>> list(versions())
    ['fiedler', 'Python', 'numpy', 'scipy', 'scikit-learn']
    """
    found = {name: version_of(name) for name in (*REQUIRED, *more)}
    own = {"fiedler": __version__, "Python": platform.python_version()}
    return own | {name: number for name, number in found.items() if number is not None}

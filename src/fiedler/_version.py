"""The version, in the one place that the build reads."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

__version__ = "0.1.0.dev0"


# ---------------------------------------------------------------------------------------------------------------------
# Versions of the packages in use.

REQUIRED = ("numpy", "scipy", "scikit-learn")


def version_of(package: str) -> str | None:
    """Return the version of an installed distribution, or None if it is not installed.

    Examples
    --------
    >>> version_of("no-such-package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def versions(more: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of fiedler, Python, the required packages and those of ``more`` that are installed.

    Examples
    --------
    >>> list(versions())
    ['fiedler', 'Python', 'numpy', 'scipy', 'scikit-learn']
    """
    packages = {name: version_of(name) for name in (*REQUIRED, *more)}
    installed = {name: number for name, number in packages.items() if number is not None}
    return {"fiedler": __version__, "Python": platform.python_version(), **installed}

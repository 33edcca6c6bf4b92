"""fiedler: clustering on manifolds with nearest-neighbour graphs, their Laplacians, and models shaped by them.

Public names are imported on first use, so ``import fiedler`` is fast. They come from :mod:`fiedler._registry`; type
checkers and editors read them in ``__init__.pyi``.
"""

from importlib import import_module
from typing import Any

from . import _registry
from ._version import __version__ as __version__

__all__ = sorted([*_registry.public_names(), *_registry.SUBPACKAGES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _registry.SUBPACKAGES or name == "baselines":  # not in __all__: it needs another distribution
        return import_module(f"{__name__}.{name}")
    module = _registry.public_names().get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_registry.public_names()})

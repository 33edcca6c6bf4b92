"""Methods that the papers compare with; they are in the distribution ``fiedler-papers``."""

from typing import Any

from ._registry import PAPERS_HINT, import_papers
from .errors import MissingDependencyError

_baselines = import_papers("baselines")
if _baselines is None:
    problem = "fiedler.baselines needs the distribution fiedler-papers"
    raise MissingDependencyError(problem, PAPERS_HINT, module="fiedler_papers")
__all__ = list(_baselines.__all__)


def __getattr__(name: str) -> Any:
    return getattr(_baselines, name)

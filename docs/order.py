"""The order of the examples in the gallery: simple ones first."""

from __future__ import annotations

from pathlib import Path

ORDER = [
    "two_moons",
    "digits",
    "predict",
    "count",
    "graph",
    "eigenmaps",
    "stability",
    "dendrogram",
    "memberships",
    "documents",
    "labels",
    "pairs",
    "saving",
    "progress",
    "pipeline",
    "frames",
    "anndata",
    "faiss",
    "bertopic",
]


def reading_order(filename: str) -> tuple[int, str]:
    """Return the sort key of an example by its file name; examples that are not listed come last."""
    name = Path(filename).name.removeprefix("plot_").removesuffix(".py")
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)

"""The order in which the gallery shows its examples: simple things first."""

from __future__ import annotations

from pathlib import Path

FIRST = [
    "two_moons",
    "digits",
    "predict",
    "count",
    "graph",
    "eigenmaps",
    "stability",
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
    """The place of an example by its file's name; one that is not listed comes last."""
    name = Path(filename).name.removeprefix("plot_").removesuffix(".py")
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)

"""Cuts of hard labels on a graph, of which the objectives of spectral clustering are relaxations."""

from __future__ import annotations

from ..graph.cuts import normalized_cut, ratio_cut

__all__ = ["normalized_cut", "ratio_cut"]

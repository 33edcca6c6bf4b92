"""Probability models on a graph."""

from .gaussian import GaussianMixture
from .lapgmm import LapGMM
from .lcgmm import LCGMM

__all__ = ["LCGMM", "GaussianMixture", "LapGMM"]

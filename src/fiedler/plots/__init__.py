"""Plots of clusterings in the style of scikit-learn's Displays: the constructor takes the data, ``plot`` draws it.

``from_estimator`` and the other class methods collect the data and draw it. They accept axes (``ax``); ``ax_`` and
``figure_`` are the axes and the figure of the plot. No window is opened, and no global setting of matplotlib changes.
"""

from .clusters import ClustersDisplay, ConfusionDisplay, MembershipDisplay
from .diagnostics import EvidenceDisplay, HistoryDisplay, StabilityDisplay
from .graphs import GraphDisplay, SpectrumDisplay

__all__ = [
    "ClustersDisplay",
    "ConfusionDisplay",
    "EvidenceDisplay",
    "GraphDisplay",
    "HistoryDisplay",
    "MembershipDisplay",
    "SpectrumDisplay",
    "StabilityDisplay",
]

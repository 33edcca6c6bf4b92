"""Pictures of clusterings, in the way of scikit-learn's displays: data in the constructor, ``plot`` draws it.

``from_estimator`` and its sisters collect the data and draw at once. Axes may be given; ``ax_`` and ``figure_`` are
what was drawn on. Nothing is shown, and no global setting of matplotlib is touched.
"""

from .clusters import ClustersDisplay
from .confusion import ConfusionDisplay
from .evidence import EvidenceDisplay
from .history import HistoryDisplay
from .links import GraphDisplay
from .membership import MembershipDisplay
from .spectrum import SpectrumDisplay
from .stability import StabilityDisplay

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

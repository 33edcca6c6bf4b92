"""Semi-supervised learning on graphs: pairwise constraints, partial labels, and a metric learned from them."""

from ..graph.constraints import PairwiseConstraints
from .learned_laplacian import LearnedLaplacian
from .llgc import LLGC
from .questions import ConstrainedKFold, suggest_pairs

__all__ = ["LLGC", "ConstrainedKFold", "LearnedLaplacian", "PairwiseConstraints", "suggest_pairs"]

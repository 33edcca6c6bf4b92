"""Methods that the papers compare with and that no maintained library provides in this form."""

from .gnmf import GNMF
from .metric_learning import LMNN, MMC
from .mpckmeans import MPCKMeans
from .nmf import NMFClustering
from .tsvm import TransductiveSVM

__all__ = ["GNMF", "LMNN", "MMC", "MPCKMeans", "NMFClustering", "TransductiveSVM"]

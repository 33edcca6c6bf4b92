"""What the papers compare with, where no maintained library offers it as it is."""

from .metric_learning import LMNN, MMC
from .mpckmeans import MPCKMeans
from .nmf import NMFClustering
from .tsvm import TransductiveSVM

__all__ = ["LMNN", "MMC", "MPCKMeans", "NMFClustering", "TransductiveSVM"]

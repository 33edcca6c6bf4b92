"""What the papers compare with, where no maintained library offers it as it is."""

from .gnmf import GNMF
from .metric_learning import LMNN, MMC
from .mpckmeans import MPCKMeans
from .nmf import NMFClustering
from .tsvm import TransductiveSVM

__all__ = ["GNMF", "LMNN", "MMC", "MPCKMeans", "NMFClustering", "TransductiveSVM"]

"""What the papers compare with, where no maintained library offers it as it is."""

from .nmf import NMFClustering

__all__ = ["NMFClustering"]

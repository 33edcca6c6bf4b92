"""Read rows to cluster from tables, arrays, folders of images or texts, or a named data set."""

from .blocks import read_blocks
from .read import read_input
from .record import Input

__all__ = ["Input", "read_blocks", "read_input"]

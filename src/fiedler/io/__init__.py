"""Read rows to cluster from tables, arrays, folders of images or texts, or a named data set."""

from ..table import TableEncoder
from .blocks import read_blocks
from .read import read_input
from .record import Input

__all__ = ["Input", "TableEncoder", "read_blocks", "read_input"]

"""Read rows to cluster from tables, arrays, folders of images or texts, or a named data set; and documents."""

from ..table import TableEncoder
from .read import read_blocks, read_documents, read_input
from .record import Input

__all__ = ["Input", "TableEncoder", "read_blocks", "read_documents", "read_input"]

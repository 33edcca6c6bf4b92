"""Reproduce the papers' experiments: protocols to cells, cells to records, records to tables and figures."""

from ._version import __version__ as __version__
from .protocol import Cell, Protocol, list_protocols, load_protocol
from .records import RecordFile
from .run import run_cell, run_cells

__all__ = ["Cell", "Protocol", "RecordFile", "list_protocols", "load_protocol", "run_cell", "run_cells"]

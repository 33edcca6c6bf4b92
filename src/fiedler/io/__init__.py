"""Data from where people keep it: tables, arrays, folders of images or texts, or a data set by its name."""

from .read import read_input
from .record import Input

__all__ = ["Input", "read_input"]

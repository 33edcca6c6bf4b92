"""A clustering as one HTML file that needs nothing else, and the record it is made from."""

from .page import read_summary, write_report, write_summary
from .summarize import summarize

__all__ = ["read_summary", "summarize", "write_report", "write_summary"]

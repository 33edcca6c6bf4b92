"""HTML reports of clusterings, each a single self-contained file, and the summaries they are made from."""

from .page import read_summary, write_report, write_summary
from .summary import summarize

__all__ = ["read_summary", "summarize", "write_report", "write_summary"]

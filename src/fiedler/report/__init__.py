"""HTML reports of clusterings, each a single self-contained file, and the summaries they are made from."""

from .page import write_report
from .summary import read_summary, summarize, write_summary

__all__ = ["read_summary", "summarize", "write_report", "write_summary"]

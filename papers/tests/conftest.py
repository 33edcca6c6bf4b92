"""Fixtures that these tests share with those of the library."""

from command_line import run_fiedler  # noqa: F401

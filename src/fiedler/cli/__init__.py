"""The command line, ``fiedler cluster | compare | predict | report | data | reproduce | doctor``: the extra ``cli``.

Each command is a few lines over the library. What it found goes to standard output, as text or as JSON; notes, progress
and errors go to standard error. Exit codes: 0, done; 1, the data or the settings do not allow it; 2, the command line
could not be understood; 130, interrupted.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

NO_EXTRA = "fiedler: the command line needs the packages of the extra 'cli': pip install 'fiedler[cli]'"


def main() -> None:
    """Run the command line."""
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.exit(NO_EXTRA)
    try:
        from .app import app

        app()
    except KeyboardInterrupt:  # while it was starting; later the commands see to it
        sys.exit(130)

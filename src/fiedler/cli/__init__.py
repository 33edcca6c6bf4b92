"""The command line, ``fiedler cluster | compare | predict | explain | report | data | doctor | ...`` (extra ``cli``).

Each command is a few lines on top of the library. Results go to standard output, as text or as JSON; notes, progress
and errors go to standard error. Exit codes: 0, success; 1, the data or the settings cannot be used; 2, invalid command
line; 130, interrupted.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from .. import __version__

INTERRUPTED = "fiedler: interrupted; no incomplete files are left"
MISSING_EXTRA = "fiedler: the command line needs the packages of the extra 'cli': pip install 'fiedler[cli]'"


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:  # without the libraries that the commands need
        sys.stdout.write(f"fiedler {__version__}\n")
        return
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.exit(MISSING_EXTRA)
    try:
        from .app import app

        app()
    except KeyboardInterrupt:  # while starting; later the commands handle it
        sys.stderr.write(f"{INTERRUPTED}\n")
        sys.exit(130)

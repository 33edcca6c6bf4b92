"""The command line, ``fiedler cluster | compare | predict | report | data | reproduce | doctor``: the extra ``cli``.

Each command is a few lines over the library. What it found goes to standard output, as text or as JSON; notes, progress
and errors go to standard error. Exit codes: 0, done; 1, the data or the settings do not allow it; 2, the command line
could not be understood; 130, interrupted.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

NO_EXTRA = "fiedler: the command line needs the packages of the extra 'cli': pip install 'fiedler[cli]'"
EXPECTED = (ValueError, TypeError, OSError, RuntimeError, ImportError)


def main() -> None:
    """Run the command line; whatever is wrong with the input is one sentence, not a traceback."""
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.exit(NO_EXTRA)
    try:
        from .app import app

        app()
    except KeyboardInterrupt:  # while it was starting; later the commands see to it
        sys.exit(130)
    except BrokenPipeError:  # a reader such as `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # a traceback is for those who ask for it
        if "--debug" in sys.argv[1:]:
            raise
        sys.stderr.write(f"fiedler: {sentence(error)}\n")
        sys.exit(1)


def sentence(error: BaseException) -> str:
    """What an error says, in one line; of the system's errors, the reason and the file.

    Examples
    --------
    >>> sentence(PermissionError(13, "Permission denied", "rows.csv"))
    "Permission denied: 'rows.csv'"
    >>> sentence(MemoryError())
    'there is not enough memory for this'
    """
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}" if error.filename else error.strerror
    said = " ".join(str(error).split())
    if said and isinstance(error, EXPECTED):
        return said
    return f"{type(error).__name__} that was not foreseen ({said}); --debug shows where"

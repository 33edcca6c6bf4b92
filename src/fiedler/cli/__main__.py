"""Run the command line with ``python -m fiedler.cli``."""

from . import main

main()

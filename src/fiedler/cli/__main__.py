"""``python -m fiedler.cli``."""

from . import main

main()

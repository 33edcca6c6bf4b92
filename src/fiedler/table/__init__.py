"""Tables with columns of any kind: what they contain, and their rows as vectors."""

from .completion import TableCompleter
from .encoder import TableEncoder

__all__ = ["TableCompleter", "TableEncoder"]

"""Tables with columns of any kind: what they contain, and their rows as vectors."""

from .encoder import TableEncoder

__all__ = ["TableEncoder"]

"""The version, which the build reads; the same as that of the library."""

__version__ = "0.1.0.dev0"

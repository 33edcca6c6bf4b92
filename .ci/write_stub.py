"""Write the type stub of the package, ``src/fiedler/__init__.pyi``, from the registry of public names."""

from pathlib import Path

from fiedler import _registry


def stub() -> str:
    """Return the text of the stub."""
    by_module: dict[str, list[str]] = {}
    for name, module in _registry.public_names().items():
        by_module.setdefault(module.removeprefix("fiedler"), []).append(name)
    lines = ['"""Generated from _registry.py by ``make stubs``; do not edit."""', ""]
    lines += [f"from . import {name} as {name}" for name in _registry.SUBPACKAGES]
    for module, own in sorted(by_module.items()):
        lines += [f"from {module} import {name} as {name}" for name in sorted(own)]
    return "\n".join([*lines, "", "__version__: str", ""])


if __name__ == "__main__":
    Path(_registry.__file__).with_name("__init__.pyi").write_text(stub(), encoding="utf-8")

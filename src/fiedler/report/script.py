"""The script of the page: the modules under ``templates/script`` bundled into one script without imports.

A module becomes an immediately called function, so that its names stay private; it returns what the module exports. The
bundler supports the two forms that the modules use: ``import { a, b } from "./name.js";`` and ``export`` before a
``const`` or a ``function``.
"""

from __future__ import annotations

import re
from importlib import resources

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function) (\w+))", re.MULTILINE)


def bundle_script(entry: str = "main") -> str:
    """Return one script with the module ``entry`` and all modules it imports, each once and before its first use."""
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        text = read_template(f"script/{name}.js")
        for imported in IMPORT.finditer(text):
            if imported[2] not in modules:
                add(imported[2])
        modules[name] = wrap_module(name, text)

    add(entry)
    return "\n".join(['"use strict";', *modules.values()])


def wrap_module(name: str, text: str) -> str:
    r"""Turn a module into a constant that contains its exports.

    Examples
    --------
    >>> print(wrap_module("two", 'import { one } from "./ones.js";\nexport const two = one + one;\n'))
    const $two = (() => {
    const { one } = $ones;
    const two = one + one;
    return { two };
    })();
    """
    body = EXPORT.sub("", IMPORT.sub(r"const {\1} = $\2;", text))
    return f"const ${name} = (() => {{\n{body}return {{ {', '.join(EXPORT.findall(text))} }};\n}})();"


def read_template(name: str) -> str:
    """Read a file under ``templates``."""
    return resources.files(__package__).joinpath("templates", *name.split("/")).read_text(encoding="utf-8")

"""The page's script: modules under ``templates/script``, each with one job, made into one script without imports.

A module becomes a function that is called at once, so that its names stay its own; what it exports is what the function
returns. Two forms are understood, and no others are used: ``import { a, b } from "./name.js";`` and ``export`` before a
``const`` or a ``function``.
"""

from __future__ import annotations

import re
from importlib import resources

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function) (\w+))", re.MULTILINE)


def bundled(entry: str = "main") -> str:
    """One script that does what the module ``entry`` does, after all those it imports, each of them once."""
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        text = template(f"script/{name}.js")
        for used in IMPORT.finditer(text):
            if used[2] not in modules:
                add(used[2])
        modules[name] = closed(name, text)

    add(entry)
    return "\n".join(['"use strict";', *modules.values()])


def closed(name: str, text: str) -> str:
    r"""A module as a constant.

    Examples
    --------
    >>> print(closed("two", 'import { one } from "./ones.js";\nexport const two = one + one;\n'))
    const $two = (() => {
    const { one } = $ones;
    const two = one + one;
    return { two };
    })();
    """
    body = EXPORT.sub("", IMPORT.sub(r"const {\1} = $\2;", text))
    return f"const ${name} = (() => {{\n{body}return {{ {', '.join(EXPORT.findall(text))} }};\n}})();"


def template(name: str) -> str:
    """The text of a file under ``templates``."""
    return resources.files(__package__).joinpath("templates", *name.split("/")).read_text(encoding="utf-8")

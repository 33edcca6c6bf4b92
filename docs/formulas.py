"""Formulas of the guide are plain text, readable as they are; on the site x_i and D^-1 get real scripts."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

GUIDE = {"cuts", "documents", "graph", "manifold", "mixtures", "spectrum", "supervision"}
AS_IT_IS = (nodes.literal, nodes.literal_block, nodes.raw, nodes.comment, nodes.subscript, nodes.superscript)

# A letter of its own (n_clusters is a name, w_ij a formula), then up to three letters, or anything in brackets.
LOW = r"(?:(?<![A-Za-z0-9_])[A-Za-z]|[\u0370-\u03ff)])_(?P<low>\{[^}]*\}|\([^)]*\)|[A-Za-z0-9]{1,3}(?![A-Za-z0-9_]))"
HIGH = r"(?<=[^\s(])\^(?P<high>\([^)]*\)|-?½|-?\d+(?:/\d+)?|[A-Za-z]+)"
SCRIPT = re.compile(f"{LOW}|{HIGH}")


def parts(text: str) -> list[nodes.Node]:
    """A text with its scripts set low and high.

    Examples
    --------
    >>> [node.astext() for node in parts("w_ij of n_clusters")]
    ['w', 'ij', ' of n_clusters']
    """
    found: list[nodes.Node] = []
    done = 0
    for match in SCRIPT.finditer(text):
        kind = "low" if match["low"] else "high"
        start = match.start(kind) - 1  # of the mark itself
        if start > done:
            found.append(nodes.Text(text[done:start]))
        inner = match[kind]
        inner = inner[1:-1] if inner[0] in "{(" else inner
        script = nodes.subscript if kind == "low" else nodes.superscript
        found.append(script("", "", *parts(inner)))
        done = match.end()
    return [*found, nodes.Text(text[done:])] if done < len(text) else found


class SetScripts(SphinxTransform):
    """Over the text of the guide's pages, code left as it is."""

    default_priority = 750

    def apply(self, **options: Any) -> None:
        """What Sphinx calls for every page."""
        if self.env.docname not in GUIDE:
            return
        for text in list(self.document.findall(nodes.Text)):
            parent = text.parent
            if not isinstance(parent, AS_IT_IS) and SCRIPT.search(text):
                parent.replace(text, parts(str(text)))


def setup(app: Any) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_transform(SetScripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

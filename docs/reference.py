"""The estimators' part of the API reference, from the registry."""

from fiedler import _registry


def api_reference() -> str:
    """Return the page ``estimators.rst``, one section per family."""
    _registry.import_papers()  # registers the baselines
    sections: dict[tuple[str, str], list[str]] = {}
    for row in _registry.ESTIMATORS.values():
        package, _, subpackage = row.full_module.rpartition(".")[0].partition(".")
        name = row.name if row.top_level else f"{subpackage}.{row.name}"
        sections.setdefault((row.section, package), []).append(name)
    lines = ["Estimators", "=========="]
    options = [".. autosummary::", "   :toctree: generated", "   :nosignatures:"]
    for (section, package), names in sections.items():
        lines += ["", section, "-" * len(section), "", f".. currentmodule:: {package}", "", *options, ""]
        lines += [f"   {name}" for name in names]
    return "\n".join([*lines, ""])

"""The estimators' part of the API reference, from the registry."""

from fiedler import _registry


def api_reference() -> str:
    """Return the page ``estimators.rst``, one section per family."""
    _registry.import_papers()  # registers the baselines
    sections: dict[str, list[str]] = {}
    for row in _registry.ESTIMATORS.values():
        package = row.full_module.rpartition(".")[0].removeprefix("fiedler.")
        sections.setdefault(row.section, []).append(row.name if row.top_level else f"{package}.{row.name}")
    lines = ["Estimators", "==========", "", ".. currentmodule:: fiedler"]
    for section, names in sections.items():
        options = [".. autosummary::", "   :toctree: generated", "   :nosignatures:"]
        lines += ["", section, "-" * len(section), "", *options, "", *(f"   {name}" for name in names)]
    return "\n".join([*lines, ""])

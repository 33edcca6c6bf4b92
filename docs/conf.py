"""Sphinx configuration; ``make docs`` builds the site to ``docs/_build/html`` and treats warnings as errors."""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import MethodDescriptorType
from typing import Any

import fiedler

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for the modules in this folder

from reference import api_reference  # noqa: E402

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "fiedler"
author = "The fiedler developers"
copyright = "The fiedler developers"
version = release = fiedler.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "options",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst", "gallery/sg_execution_times.rst", "sg_execution_times.rst"]
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|scipy|sklearn|matplotlib|pandas)\..*"),  # documented by other libraries
    (r"py:.*", r"fiedler\.(_\w+|core|graph|clustering|mixture|report)(\.\w+){0,2}"),  # not part of the reference
]

# ------------------------------------------------------------------------------------------------------------ pages

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
math_number_all = True
smartquotes = False  # keeps primes in formulas, and quotes that can be copied
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# -------------------------------------------------------------------------------------------------------- reference

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

FOREIGN_MODULES = ("sklearn.", "builtins", "collections.")
INHERITED_BUT_SHOWN = {"fit_predict", "fit_transform"}  # defined by scikit-learn, part of an estimator's interface


def write_estimators_page() -> None:
    """Write the estimators' part of the API reference, ``estimators.rst``, from the registry."""
    page, text = HERE / "estimators.rst", api_reference()
    if not page.exists() or page.read_text(encoding="utf-8") != text:  # an unchanged page is not built again
        page.write_text(text, encoding="utf-8")


write_estimators_page()


def skip_member(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out members that are inherited from scikit-learn and from tuples."""
    if name.startswith("set_") and name.endswith("_request"):
        return True
    if isinstance(value, MethodDescriptorType) or type(value).__name__ == "_tuplegetter":
        return True
    module = getattr(value, "__module__", None) or ""
    return True if module.startswith(FOREIGN_MODULES) and name not in INHERITED_BUT_SHOWN else None


def find_by_last_name(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Resolve a reference by the end of its name, since docstrings use names as they are known in their module."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removeprefix("fiedler.")
    domain = env.domains["py"]
    matches = [name for name in domain.objects if name.endswith(f".{target}")]
    if not matches:
        return None
    page, name = node.get("refdoc", ""), min(matches, key=len)
    return domain.resolve_xref(env, page, app.builder, "obj", name, node, contnode)


# ---------------------------------------------------------------------------------------------------------- gallery

# Examples that need a library that is not installed are shown but not run.
NEEDS = {"anndata": "anndata", "bertopic": "bertopic", "faiss": "faiss", "frames": "polars"}
MISSING = [name for name, library in NEEDS.items() if find_spec(library) is None]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": rf"/plot_(?!({'|'.join(MISSING) or 'nothing'})\.py)",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "image_scrapers": ("matplotlib",),
    "within_subsection_order": "order.reading_order",
    "remove_config_comments": True,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("fiedler",),
    "reference_url": {"fiedler": None},
    "prefer_full_module": [r"fiedler\.(plots|text|datasets|supervision|metrics)"],
    "show_memory": False,
    "show_signature": False,
    "capture_repr": (),
    "write_computation_times": False,
}

# ------------------------------------------------------------------------------------------------------------- look

html_theme = "pydata_sphinx_theme"
html_title = "fiedler"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"start": [], "changelog": [], "results": []}  # no subpages, or wide tables
html_theme_options = {
    "logo": {"text": "fiedler"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}


def setup(app: Any) -> None:
    """Register the event handlers; called by Sphinx."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("missing-reference", find_by_last_name)

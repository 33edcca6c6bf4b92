"""The documentation site: ``make docs`` builds it to ``docs/_build/html``, and a warning is an error."""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import MethodDescriptorType
from typing import Any

import fiedler

sys.path.insert(0, str(Path(__file__).parent))  # for the three modules beside this file
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "fiedler"
author = "The fiedler developers"
copyright = "The fiedler developers"
version = release = fiedler.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "formulas",
    "options",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst", "gallery/sg_execution_times.rst", "sg_execution_times.rst"]
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|scipy|sklearn|matplotlib|pandas)\..*"),  # other libraries' own pages
    (
        r"py:.*",
        r"fiedler\.(core|graph|cluster|mixture|report)\.\w+(\.\w+)?",
    ),  # not in the reference
]

# ------------------------------------------------------------------------------------------------------------ pages

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # a prime is a prime, and 'auto' can be copied
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
ELSEWHERE = {"cluster": "fiedler.clustering.cluster"}  # the folder that can be called is documented as the function

NOT_OURS = ("sklearn.", "builtins")
WORTH_A_LINE = {"fit_predict", "fit_transform"}  # scikit-learn's, and part of what an estimator is


def skip_member(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """What scikit-learn and the tuples bring along is not listed on every page."""
    if name.startswith("set_") and name.endswith("_request"):
        return True
    if isinstance(value, MethodDescriptorType) or type(value).__name__ == "_tuplegetter":
        return True
    home = getattr(value, "__module__", None) or ""
    return True if home.startswith(NOT_OURS) and name not in WORTH_A_LINE else None


def find_by_last_name(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """A docstring names its neighbours as its module knows them; they are found here by the ends of their names."""
    if node.get("refdomain") != "py":
        return None
    wanted = node["reftarget"].removeprefix("fiedler.")
    domain = env.domains["py"]
    known = [name for name in domain.objects if name == ELSEWHERE.get(wanted) or name.endswith(f".{wanted}")]
    if not known:
        return None
    return domain.resolve_xref(
        env, node.get("refdoc", ""), app.builder, "obj", min(known, key=len), node, contnode
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- gallery

# An example that needs a library which is not there is shown and not run.
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
html_sidebars = {"start": [], "changelog": [], "results": []}  # nothing beside them, or tables that need the room
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
    """What Sphinx calls when it has read this file."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("missing-reference", find_by_last_name)

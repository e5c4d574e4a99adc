"""Configuration of the documentation, which `make docs` builds."""

import importlib
import inspect
import re
from typing import Any

from sdca_rs import LossInfo, __version__, losses

project = "sdca-rs"
author = "the sdca-rs maintainers"
copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates", "generated/stories/*.ipynb"]
html_title = f"sdca-rs {release}"
html_favicon = "_static/mark.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "logo": {
        "image_light": "_static/logo-light.svg",
        "image_dark": "_static/logo-dark.svg",
        "alt_text": "sdca-rs: to the front page",
    },
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version", "theme-version"],
}
# Pages that stand alone need no list of neighbours.
html_sidebars = {"index": [], "install": [], "ten_minutes": []}
html_show_sourcelink = False

# Prompts and output are left out of what is copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# The stories are run when the documentation is built; one that fails fails the build.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/stories"],
    "gallery_dirs": ["generated/stories"],
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("sdca_rs",),
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "plot_gallery": True,
    "write_computation_times": False,
}

# Displayed formulas are typeset. Short expressions in the text stay in code font, with
# the names of the source, so that they can be searched for there.
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath", "substitution"]
myst_heading_anchors = 3

# numpydoc describes parameters; the template of a class lists its own methods, and not
# those that scikit-learn gives to every estimator.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False


def own_members(module: str, name: str, kind: str) -> list[str]:
    """Return the documented methods, or attributes, that the package gives a class."""
    cls = getattr(importlib.import_module(module), name)
    return [member for member in dir(cls) if kind_of(cls, member) == kind]


def kind_of(cls: type, name: str) -> str:
    """Say what a member is: a method, an attribute, or nothing of the package's own."""
    member = inspect.getattr_static(cls, name)
    if name.startswith("_") or not member.__doc__:
        return "none"
    if inspect.isgetsetdescriptor(member) or inspect.ismemberdescriptor(member):
        return "attribute"
    kind = "attribute" if isinstance(member, property) else "method"
    for wrapper in ("__func__", "fget", "fn"):
        member = getattr(member, wrapper, member)
    own = str(getattr(member, "__module__", "")).startswith("sdca_rs")
    return kind if own and callable(member) else "none"


autosummary_context = {"own_members": own_members}
# Which holds a function, and so is not remembered from one build to the next.
suppress_warnings = ["config.cache"]


def losses_table() -> str:
    """Return the table of all losses, from the registry of the compiled core."""
    heads = "`loss`", "task", "formula", "`loss_param`", "default", "allowed", "`p` is"
    rows = [heads, ("---",) * len(heads), *map(table_row, losses())]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def table_row(loss: LossInfo) -> tuple[str, ...]:
    links = {
        "identity": "the score" if loss.task == "classification" else "the prediction",
        "logit": "the log-odds of the second class",
        "log": "the logarithm of the expected target",
    }
    formula = loss.formula.replace("|", "\\|")
    shape = ("", "", "")
    if loss.param is not None:
        shape = (f"`{loss.param}`", f"{loss.default:g}", str(loss.expected))
    return (f"`{loss.name}`", loss.task, f"`{formula}`", *shape, links[loss.link])


myst_substitutions = {"losses_table": losses_table()}


def quote_names(*event: Any) -> None:
    """Keep a shape like ``(n_features_in_,)`` from being read as a link."""
    lines = event[-1]
    lines[:] = [re.sub(r"\((\w+_),\)", r"(``\1``,)", line) for line in lines]


def close_blocks(*event: Any) -> None:
    """Leave out the empty line that ends a doctest, where only a test needs it."""
    source = event[-1]
    source[0] = re.sub(r"\n\n```(?=\n|$)", "\n```", source[0])


def setup(app: Any) -> None:
    app.connect("source-read", close_blocks)
    # Before numpydoc, which takes the docstring apart.
    app.connect("autodoc-process-docstring", quote_names, priority=100)

"""Configuration of the documentation, which `make docs` builds."""

import re
from typing import Any

from sdca_rs import LossInfo, __version__, losses

project = "sdca-rs"
author = "the sdca-rs maintainers"
copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
exclude_patterns = ["generated"]
html_theme = "furo"
html_title = f"sdca-rs {release}"

# Displayed formulas are typeset. Short expressions in the text stay in code font, with
# the names of the source, so that they can be searched for there.
myst_enable_extensions = ["amsmath", "dollarmath", "substitution"]
myst_heading_anchors = 3

# numpydoc describes parameters; methods are listed by hand in api.md.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False


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


def setup(app: Any) -> None:
    # Before numpydoc, which takes the docstring apart.
    app.connect("autodoc-process-docstring", quote_names, priority=100)

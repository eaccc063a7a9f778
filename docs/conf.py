"""Sphinx configuration: the pages, the API from docstrings, and the command line from its help texts."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import surepick

project = "surepick"
author = "The surepick authors"
copyright = "the surepick authors"
release = surepick.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml", "cli_reference"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
html_css_files = ["formulas.css"]
html_theme = "furo"
pygments_dark_style = "github-dark"
smartquotes_action = "qe"
"""Quotes and ellipses only: options such as --json keep their dashes."""
html_title = "surepick"
html_static_path = ["static"]
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
"""Full signatures would hide the text, which describes the arguments."""
python_use_unqualified_type_names = True
suppress_warnings = ["myst.xref_missing", "config.cache"]
"""Links to files that are not pages (sources, README) are checked by the tests instead."""


def setup(app: Any) -> None:
    """Escape |x| in docstrings: it means an absolute value there and a substitution in reStructuredText."""
    app.connect("autodoc-process-docstring", _escape_bars)


def _escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [line if line.lstrip().startswith(">>>") else line.replace("|", "\\|") for line in lines]

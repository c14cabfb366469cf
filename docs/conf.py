"""Sphinx: how the site is built from these pages and from the docstrings.

    nox -s docs                                     # with all checks, into build/site
    python -m sphinx -W --keep-going docs build/site

Nothing in the site comes from another host: the theme brings its own files, and pictures are SVGs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.append(str(HERE.parent))  # the checkout, unless streamtok is elsewhere

import streamtok  # noqa: E402  after the path is set

project = "streamtok"
author = "the streamtok authors"
copyright = f"2026, {author}. MIT licence"
version = release = streamtok.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "api_docs", "command_line"]
root_doc = "index"
exclude_patterns = ["_ext", "_static"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # pages that GitHub shows, too, may begin below level 1

# Docstrings are plain text with code in single backticks.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "inherited-members": "object"}
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

smartquotes = False  # options begin with two hyphens
html_theme = "furo"
html_domain_indices = False
html_title = f"streamtok {release}"
html_static_path = ["_static"]
html_css_files = ["streamtok.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"footer_icons": []}
pygments_style = "friendly"
pygments_dark_style = "native"

linkcheck_timeout = 20
linkcheck_anchors = False


def link_outside_files(app: Any, page: str, source: list[str]) -> None:
    """Make a link that leaves this folder point to a copy of the file in the site."""
    if "/" not in page:  # the pages of the folders below link to those here
        source[0] = re.sub(r"\]\((\.\./[^)#]+)\)", r"](path:\1)", source[0])


def setup(app: Any) -> None:
    app.connect("source-read", link_outside_files)

"""The site: ``make docs`` builds it, and every warning is an error.

Equations become MathML and the search is a script of the site's own, so the built pages need no
network, also when they are opened as files. Code cells run when their text has changed; their
results are kept in ``build/docs/cells``.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from latex2mathml.converter import convert

from hdica.version import __version__

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

project = "hdica"
copyright = "the hdica developers"
version = release = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
default_role = "literal"
nitpicky = True
# Documented under their full names, or in a sentence alone.
nitpick_ignore = [("py:exc", "DamageError")]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "html_image"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = "build/docs/cells"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_execution_in_temp = True
nb_merge_streams = True
nb_render_markdown_format = "myst"
suppress_warnings = ["misc.highlighting_failure"]
logging.getLogger("traitlets").setLevel(logging.WARNING)
# In cells, a line with "!" fails where its program fails, and figures are drawn as lines.
PROFILE = Path(__file__).parents[1] / "build/docs/ipython/profile_default"
(PROFILE / "startup").mkdir(parents=True, exist_ok=True)
os.environ |= {"IPYTHONDIR": str(PROFILE.parent), "COLUMNS": "110"}
PROFILE.joinpath("ipython_kernel_config.py").write_text(
    'c.InlineBackend.figure_formats = ["svg"]\nc.IPKernelApp.log_level = "ERROR"\n'
)
PROFILE.joinpath("startup/shell.py").write_text("""\
def _system(command):
    import os, subprocess
    os.environ.pop("FORCE_COLOR", None)
    done = subprocess.run(command, shell=True, stdout=-1, stderr=-2, text=True)
    print(done.stdout, end="")
    done.check_returncode()
get_ipython().system = _system
del _system
""")

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

PRIME = re.compile(r"<msup>(<m[io]>[^<]*</m[io]>)<m[io]>&#x02032;</m[io]></msup>")
html_theme = "furo"
html_title = "hdica"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["benchmarks.svg", "benchmarks-dark.svg"]
html_copy_source = False
html_show_sourcelink = False


def _equation(writer: HTML5Translator, node: nodes.Element) -> None:
    """Write an equation as MathML, which every browser draws without a script."""
    from docutils.nodes import SkipNode, math

    text = convert(node.astext(), display="inline" if isinstance(node, math) else "block")
    # A prime as an exponent is too small to be seen in most fonts.
    writer.body.append(PRIME.sub(r'\1<mo lspace="0" rspace="0">&#x02032;</mo>', text))
    raise SkipNode


def _escape_bars(_app: Sphinx, _what: str, _name: str, *rest: object) -> None:
    """Escape the bars of |x| in a docstring, which reStructuredText takes for a substitution."""
    lines: list[str] = rest[-1]  # type: ignore[assignment]
    for number, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = (part.replace("|", r"\|") for part in parts[::2])
        lines[number] = "``".join(parts)


def _offer_notebook(_app: Sphinx, page: str, source: list[str]) -> None:
    """Let a tutorial end with itself as a notebook."""
    folder, _, name = page.partition("/")
    if folder == "tutorials" and name != "index":
        source[0] += f"\n---\n\nThis page as a notebook: {{nb-download}}`{name}.ipynb`\n"


def setup(app: Sphinx) -> None:
    """Give Sphinx the renderer of equations, and what is done to docstrings and tutorials."""
    app.add_html_math_renderer("mathml", (_equation, None), (_equation, None))
    app.connect("autodoc-process-docstring", _escape_bars)
    app.connect("source-read", _offer_notebook)

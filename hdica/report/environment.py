"""Templates of pages, and the styles and scripts beside them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from hdica.show.typeset import formula, prose, tied, unmarked


def template(name: str) -> Template:
    """A template; whatever is put into it is escaped."""
    return _environment().get_template(name)


def source(name: str) -> str:
    """The text of a style or a script."""
    return files("hdica.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("hdica.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"formula": formula, "prose": prose, "tied": tied, "unmarked": unmarked}
    return made

"""Titles and captions of all figures of a report in one file beside them, reStructuredText.

Snakemake's report takes them from there: what stands between ``[key]`` and ``[/key]`` belongs to
the figure ``key``, what stands between ``[/]`` and ``[//]`` to the study.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from hdica.show.panel import Panel

NAME = "captions.rst"
"""In the folder of the figures; no figure has this ending."""


def captions(
    answer: str, sections: Mapping[str, Sequence[Panel]], headings: Mapping[str, str]
) -> bytes:
    """Content of the file, of the headline, the panels by section and the headings of sections."""
    return "\n".join(_blocks(answer, sections, headings)).encode()


def _blocks(
    answer: str, sections: Mapping[str, Sequence[Panel]], headings: Mapping[str, str]
) -> Iterator[str]:
    yield _block("/", f"<p>The study's answer: {answer}</p>" if answer else "")
    for section, panels in sections.items():
        for panel in panels:
            about = f".. {panel.key}: {_line(headings[section])}: {_line(panel.title.plain)}\n"
            caption = f"<p><strong>{panel.title.html}.</strong> {panel.caption}</p>"
            yield about + _block(panel.key, caption)


def _block(key: str, html: str) -> str:
    body = f".. raw:: html\n\n   {_line(html)}\n\n" if html else ""
    return f".. [{key}]\n\n{body}.. [/{key}]\n"


def _line(text: str) -> str:
    return " ".join(text.split())


def titles(content: str) -> dict[str, tuple[str, str]]:
    """Heading of the section and title of every figure, by key, from the file."""
    found = re.findall(r"^\.\. (\w+): (.*?): (.*)$", content, re.MULTILINE)
    return {key: (heading, title) for key, heading, title in found}

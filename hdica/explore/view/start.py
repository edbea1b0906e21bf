"""What the server makes for each visitor."""

from __future__ import annotations

from html import escape

import panel as pn

from hdica.errors import HdicaError
from hdica.explore.feed import Feed
from hdica.explore.surfaces import Surfaces
from hdica.explore.view.page import Page
from hdica.explore.view.theme import PAGE, SHEET

HEAD = """{% block preamble %}
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
{% endblock %}"""
"""What the head of the document has beyond scripts and styles."""


def page_of(feed: Feed, surfaces: Surfaces) -> pn.viewable.Viewable:
    """The page of a new visitor; what is wrong with the results is a sentence on it."""
    if SHEET not in pn.config.raw_css:
        pn.config.raw_css.append(SHEET)
    document = pn.state.curdoc
    if document is not None:
        document.template = HEAD
        document.template_variables.update(app_favicon="", apple_icon="")
    try:
        return Page(feed, surfaces).view()
    except HdicaError as exc:
        return pn.pane.HTML(f"<p class=wrong>{escape(str(exc))}</p>", stylesheets=[PAGE])

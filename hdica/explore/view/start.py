"""What the server makes for each visitor."""

from __future__ import annotations

import panel as pn

from hdica.explore.feed import Feed
from hdica.explore.surfaces import Surfaces
from hdica.explore.view.page import Page
from hdica.explore.view.theme import SHEET

REFERRER = '<meta name="referrer" content="no-referrer">'


def page_of(feed: Feed, surfaces: Surfaces) -> pn.viewable.Viewable:
    """The page of a new visitor."""
    if SHEET not in pn.config.raw_css:
        pn.config.raw_css.append(SHEET)
    return Page(feed, surfaces).view()

"""What a panel shows and what sentences say, as tests look at it."""

import re


def plain(sentences):
    """Sentences without their marks."""
    return [re.sub(r"<[^>]+>", "", str(s)) for s in sentences]


def of(panel, kind):
    """Items of a panel of one kind."""
    return [i for i in panel.items if isinstance(i, kind)]

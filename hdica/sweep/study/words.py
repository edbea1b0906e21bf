"""Texts that a study holds for its readers."""

from __future__ import annotations

from hdica.errors import HdicaError

SPACES = "\n\t\u00a0\u2002\u2003\u2009\u202f"
"""What a text may hold beside what is printed."""


def plain_text(text: str) -> str:
    """The text, if everything in it is printed or a space."""
    odd = next((c for c in text if not c.isprintable() and c not in SPACES), "")
    if odd:
        raise HdicaError(f"it holds the character U+{ord(odd):04X}, which is not allowed")
    return text


def one_line(text: str) -> str:
    """The same on one line."""
    if "\n" in plain_text(text.rstrip("\n")):
        raise HdicaError("it has a line break (one line is allowed)")
    return text.rstrip("\n")

"""Sizes of memory, as a user writes them."""

from __future__ import annotations

import re

from hdica.errors import HdicaError

FORM = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([kMGT])(i?)B")
LEAST = 256 * 2**20
"""Bytes below which no worker lives long: its libraries alone take 150 MiB."""


def in_bytes(text: str) -> int:
    """Bytes of a size, 0 if it is none."""
    found = FORM.fullmatch(text)
    if found is None:
        return 0
    number, letter, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** ("kMGT".index(letter) + 1))


def check_size(text: str, field: str, workers: int = 1) -> str:
    """``text`` if it is a size of memory, as 2GiB or 500MB, in which so many workers can live."""
    if in_bytes(text) < workers * LEAST:
        each = f" for each of {workers} workers" if workers > 1 else ""
        raise HdicaError(
            f"{field} = {text!r} is not allowed (a number and a unit, as 2GiB or 500MB; at least "
            f"{LEAST // 2**20}MiB{each})"
        )
    return text

"""What must hold of every study file: it is a study, or one sentence says why not."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hdica.errors import MOST_LETTERS, HdicaError
from hdica.study.study import Study, load_study

LONGEST = 40.0
"""Seconds of one core that a case may take; all but a few take less than one."""
HANGS = 900
"""Seconds after which a case counts as hung, on a machine that is busy with others."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the body after some seconds."""

    def ended(number: int, frame: object) -> None:
        raise TimeoutError(f"it takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(raw: bytes, folder: Path) -> Study | str:
    """The study of a file, or the sentence that refuses it.

    Raises
    ------
    AssertionError
        If it takes too long, leaves a file, or says more than one sentence.
    Exception
        Whatever is not the refusal of a user's file.
    """
    file = folder / "fuzz.yaml"
    file.write_bytes(raw)
    started = time.process_time()
    found: Study | str
    with at_most(HANGS), warnings.catch_warnings():
        warnings.simplefilter("error")  # each would be lines on a terminal
        try:
            found = load_study(file)
            found.full_hash()
        except HdicaError as exc:
            found = str(exc)
    took = time.process_time() - started
    assert took < LONGEST, f"it took {took:.1f} s"
    assert os.listdir(folder) == ["fuzz.yaml"]
    if isinstance(found, str):
        assert found.isprintable(), repr(found)
        assert 0 < len(found) <= MOST_LETTERS
    else:
        again = Study.model_validate_json(found.model_dump_json())
        assert again.full_hash() == found.full_hash()
    return found

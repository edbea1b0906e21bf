"""Read from a trace what a command did to files below one folder."""

from __future__ import annotations

from tests.power import contents, descriptors, names
from tests.power.operations import Recording
from tests.power.recorder import MAKERS, Handler, Recorder
from tests.power.trace import Call, calls

HANDLERS: dict[str, Handler] = {**descriptors.HANDLERS, **contents.HANDLERS, **names.HANDLERS}


def operations_in(lines: list[str], folder: str, marks: str, cwd: str) -> Recording:
    """Operations on files in a trace.

    Parameters
    ----------
    lines
        The trace.
    folder
        What is recorded: a path without links, empty when the trace began.
    marks
        File to which the command says what it does.
    cwd
        Folder that the command was started in.
    """
    recorder = Recorder(folder, marks, cwd, HANDLERS)
    ended: list[int] = []
    for call, returns in _in_order(lines):
        if not returns:
            if call.name in MAKERS:
                recorder.processes.made(call)
            continue
        # Operations that had ended on an earlier line than this call began on.
        before = next((n for n in range(len(ended), 0, -1) if ended[n - 1] < call.began), 0)
        recorder.take(call, before)
        ended += [call.ended] * (len(recorder.operations) - len(ended))
    return Recording(tuple(recorder.operations), tuple(recorder.said))


def _in_order(lines: list[str]) -> list[tuple[Call, bool]]:
    """Every call twice, where it began and where it returned, line by line."""
    found = list(calls(lines))
    both = [(call.began, 0, call) for call in found] + [(call.ended, 1, call) for call in found]
    both.sort(key=lambda one: one[:2])
    return [(call, bool(end)) for _, end, call in both]

"""Compute a block in a thread of its own, and end it where a point exceeds its budget.

What has been computed by then is stored, with that point as failed, and the block is begun again.
A thread that does not end, because a compiled kernel never returns, is left behind; blocks are
then computed in processes that can be killed (:mod:`hdica.sweep.run.apart`).
"""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

from hdica.process.interrupt import Beside, Late
from hdica.sweep.files import store
from hdica.sweep.run.block import Again, Begun, BlockSummary, compute_block
from hdica.sweep.run.pulse import Pulse
from hdica.sweep.workers.care import Care, over_budget

LOOK = 1.0
"""Seconds between looks at a point that takes long."""
LOOKS = 10
"""Looks at least before a point exceeds its budget."""
IDLE = 0.01
"""Share of a processor below which a thread is waiting for something."""
GRACE = 5.0
"""Seconds that a thread has to end, but no more than a point has to be computed."""
BEGIN = 5.0
"""Processor seconds in which a block is read, before any point of it is begun."""
COMPILING = 60.0
"""More seconds that it has while it compiles or imports, which must not be cut short."""
_PARTING = 0.5
ALARMS = (signal.SIGPROF, signal.SIGALRM)
"""Signals that end a process in which no Python runs any more."""
_LEFT_BEHIND: list[Beside[BlockSummary]] = []


def left_behind() -> bool:
    """Whether threads of this process have not ended when they were told to."""
    _LEFT_BEHIND[:] = [one for one in _LEFT_BEHIND if not one.wait(0)]
    return bool(_LEFT_BEHIND)


def forget() -> None:
    """In a fork, where no other threads are: none was left behind."""
    _LEFT_BEHIND.clear()


class _Look:
    """What the looks at a computation have shown so far."""

    def __init__(self, call: Beside[BlockSummary], pulse: Pulse, care: Care) -> None:
        self.call, self.pulse, self.care = call, pulse, care
        self.every, self.grace = min(LOOK, care.budget / LOOKS), min(GRACE, care.budget)
        self.turn, self.idle, self.before = -1, 0.0, 0.0
        self.planned, self.limit = 0.0, care.budget
        self.places: tuple[int, ...] = ()
        self.spent = 0.0

    def late(self) -> bool:
        """Whether what is being computed now has exceeded its budget."""
        pulse, used = self.pulse, self.call.processor_time()
        if pulse.turn != self.turn:
            self.turn, self.idle, self.planned, self.limit = pulse.turn, 0.0, 0.0, self.care.budget
        elif used - self.before < IDLE * self.every:
            # Counted by looks: neither a process that is stopped nor a clock that jumps is idle.
            self.idle += self.every
        self.before = used
        self.places, self.spent, begun = pulse.places, used - pulse.since, pulse.begun
        if not self.places or begun is None or not self._beyond():
            return False
        if not self.planned:
            # Asked only now: the cost model of a point's own parameters is no free question.
            self.planned = begun.work.seconds(self.places)
            self.limit = self.care.limit(self.planned)
        return self._beyond() and pulse.turn == self.turn

    def _beyond(self) -> bool:
        return max(self.spent, self.idle) > self.limit

    @property
    def left(self) -> float:
        """Processor seconds until then, and those in which a thread is ended."""
        begins = 0.0 if self.places else BEGIN
        return begins + max(0.0, self.limit - self.before + self.pulse.since) + 3 * self.grace


def _arm(seconds: float) -> None:
    """Let the system end this process after some processor time, or thrice as long by the clock.

    It does so even where a kernel never lets go of Python's lock, so that no watcher runs.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 3 * seconds)


def attempt(
    path: Path, block: int, care: Care, shared: memoryview | None = None, killable: bool = False
) -> BlockSummary:
    """Compute a block in another thread, and see to it that no point takes for ever.

    Another process may see in ``shared`` which point is being computed. If ``killable``, this one
    may be ended by the alarm clock of the system.
    """
    pulse = Pulse(shared)
    call = Beside(compute_block, path, block, care, pulse)
    look = _Look(call, pulse, care)
    try:
        while True:
            if killable:
                _arm(look.left)
            try:
                ended = call.wait(look.every)
            except BaseException:  # a signal: nobody wants it any more
                call.end(_PARTING)
                raise
            if ended:
                return call.result()
            if look.late():
                break
        pulse.ending = True
        if not call.end(look.grace, COMPILING):
            _LEFT_BEHIND.append(call)
    finally:
        if killable:
            _arm(0.0)  # no alarm is left behind
    if not isinstance(call.raised, Late):
        return call.result()  # it has ended at the last moment
    assert pulse.begun is not None
    raise _settled(pulse.begun, look)


def _settled(begun: Begun, look: _Look) -> Again:
    """Store a block that was cut short, with the point for which it was as failed."""
    late, reason = look.places, over_budget(look.limit, look.planned)
    # A copy: a thread that is left behind may wake up one day.
    begun = replace(begun, data=begun.data.copy())
    label = f"block {begun.block} of {begun.working.path.name}"
    said = f"{label}: its points together have exceeded their budget, and are computed one by one"
    if len(late) == 1 and begun.data.status[late[0]] == store.PENDING:
        begun.data.fail(late[0], reason)
        begun.data.cpu_seconds[late[0]] = max(0.0, look.spent)
        said = f"{label}: a point failed, {reason}"
    return Again(said, begun.commit(), singly=len(late) > 1)

"""Rows and entries of the arrays that the compiled functions of the solver share."""

from __future__ import annotations

import math

X, X_PHI, GAP, GAP_PHI, GAP_MIDDLE, FROM_LEFT, FROM_RIGHT = range(7)
"""Rows of the table of a mesh."""
MASS, RATE, ONE, GIVEN, TWO, RIGHT, LEFT, SHARE, SMOOTH = range(9)
"""Rows of the flat arrays over cells of a state."""
T, DT, Q, H2, RATED, SPENT, MARK = range(7)
"""Entries of the clock of a state."""
KEPT = 5
"""Earlier solutions of a stage through which its next one is foretold."""
FIRST = 6
"""Column of the first functional in a row of measures."""
DONE, WINDOWS, HALT, BROKE, ROOM = range(5)
"""Why a walk returned: all marks passed; other windows; a mark to halt at; budget; no room."""
GAMMA = 1 - 1 / math.sqrt(2)
"""The two-stage diagonally implicit method of order 2 that is L-stable (Alexander 1977)."""
PUSH = (1 - 2 * GAMMA) / GAMMA
"""p0 + (1 - gamma) dt A s1 = s1 + PUSH gamma dt A s1, because s1 = p0 + gamma dt A s1."""

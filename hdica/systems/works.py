"""Works on which methods of several systems rest, and what there is to cite of a computation.

The ``equations`` of a method say what it computes and by which published algorithm; what they name
is looked for among the papers of its system, the works that the system brings, and these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hdica.systems.paper import Paper
from hdica.systems.system import System
from hdica.version import __version__

WORKS = (
    Paper(
        "Hairer, Norsett and Wanner 1993",
        "Solving Ordinary Differential Equations I: Nonstiff Problems",
        ("Hairer, Ernst", "Nørsett, Syvert P.", "Wanner, Gerhard"),
        1993,
        "Springer",
        "book",
        {"edition": "2"},
        ("Dormand-Prince 8(5,3)",),
    ),
    Paper(
        "Scharfetter and Gummel 1969",
        "Large-signal analysis of a silicon Read diode oscillator",
        ("Scharfetter, Donald L.", "Gummel, Hermann K."),
        1969,
        "IEEE Transactions on Electron Devices",
        more={"volume": "16", "number": "1", "pages": "64--77", "doi": "10.1109/T-ED.1969.16566"},
        named=("Scharfetter-Gummel",),
    ),
    Paper(
        "Alexander 1977",
        "Diagonally implicit Runge-Kutta methods for stiff O.D.E.'s",
        ("Alexander, Roger",),
        1977,
        "SIAM Journal on Numerical Analysis",
        more={"volume": "14", "number": "6", "pages": "1006--1021", "doi": "10.1137/0714068"},
        named=("SDIRK2",),
    ),
    Paper(
        "Paul 2007",
        "Asymptotics of sample eigenstructure for a large dimensional spiked covariance model",
        ("Paul, Debashis",),
        2007,
        "Statistica Sinica",
        more={"volume": "17", "number": "4", "pages": "1617--1642"},
    ),
    Paper(
        "Baik, Ben Arous and Peche 2005",
        "Phase transition of the largest eigenvalue for nonnull complex sample covariance matrices",
        ("Baik, Jinho", "Ben Arous, Gérard", "Péché, Sandrine"),
        2005,
        "The Annals of Probability",
        more={
            "volume": "33",
            "number": "5",
            "pages": "1643--1697",
            "doi": "10.1214/009117905000000233",
        },
    ),
)
"""Published algorithms and results that methods of more than one system rest on."""
RATTRAY_2002 = Paper(
    "Rattray 2002",
    "Stochastic Trapping in a Solvable Model of On-Line Independent Component Analysis",
    ("Rattray, Magnus",),
    2002,
    "Neural Computation",
    more={"volume": "14", "pages": "421--435", "doi": "10.1162/08997660252741185"},
)
WANG_LU_2017 = Paper(
    "Wang and Lu 2017",
    "The Scaling Limit of High-Dimensional Online Independent Component Analysis",
    ("Wang, Chuang", "Lu, Yue M."),
    2017,
    "Advances in Neural Information Processing Systems",
    "inproceedings",
    {"volume": "30"},
)
"""Where online ICA comes from, with one feature and with several."""
REDUCE_AND_CONQUER = Paper(
    "Reduce and Conquer 2025",
    "Reduce and Conquer: Independent Component Analysis at linear sample complexity",
    ("author names withheld",),
    2025,
    "Under review for the Workshop on High-dimensional Learning Dynamics",
    "unpublished",
)
"""Where several systems come from."""
FASTICA = Paper(
    "Hyvarinen 1999",
    "Fast and robust fixed-point algorithms for independent component analysis",
    ("Hyvärinen, Aapo",),
    1999,
    "IEEE Transactions on Neural Networks",
    more={"volume": "10", "number": "3", "pages": "626--634"},
    named=(f"{REDUCE_AND_CONQUER.cite}, (2)", f"{REDUCE_AND_CONQUER.cite}, (1), (2)"),
)
"""What (2) of :data:`REDUCE_AND_CONQUER` is taken from."""
Cited = dict[Paper, str]
"""What to cite, and of each what it is cited for."""


def software(version: str = __version__) -> Paper:
    """Hdica itself, as CITATION.cff has it."""
    return Paper(
        "hdica",
        "hdica: high-dimensional dynamics of online learning",
        ("the hdica developers",),
        kind="software",
        more={"version": version},
    )


def cited(record: System, equations: Mapping[str, str], version: str = __version__) -> Cited:
    """What there is to cite of some methods of a system: its papers, their works, the software.

    Parameters
    ----------
    record
        The system.
    equations
        What each method computes, by its name: see :class:`hdica.systems.method.Method`.
    version
        Version of hdica that computed.
    """
    found: Cited = dict.fromkeys(record.papers, f"system {record.name}")
    for paper in (*record.works, *WORKS):
        methods = [name for name, text in equations.items() if paper.named_in(text)]
        if methods:
            many = "methods" if len(methods) > 1 else "method"
            found[paper] = f"{many} {', '.join(methods)}"
    return found | {software(version): "software"}


def bibtex(what: Cited) -> str:
    """Entries of BibTeX, each below a line that says what it is cited for."""
    keys = _distinct([paper.key for paper in what])
    entries = [
        f"% {use}\n{paper.bibtex().replace(paper.key, key, 1)}\n"
        for (paper, use), key in zip(what.items(), keys, strict=True)
    ]
    return "\n".join(entries)


def _distinct(keys: Iterable[str]) -> list[str]:
    """Keys of which no two are the same: a letter is added to the later ones."""
    found: list[str] = []
    for key in keys:
        names = [key, *(f"{key}{letter}" for letter in "bcdefghijklmnopqrstuvwxyz")]
        found.append(next(name for name in names if name not in found))
    return found

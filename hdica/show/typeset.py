"""Formulas and texts as they are printed."""

from __future__ import annotations

import re
from html import escape

from markupsafe import Markup

GREEK = {
    "alpha": "α", "beta": "β", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "rho": "ρ",
    "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ", "omega": "ω",
    "Gamma": "Γ", "Delta": "Δ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
"""Greek letters by their names, but for ``gamma`` and ``chi``, which are names of laws as well."""
SPELLED = {
    **GREEK, "eps": "ε", "sqrt": "√", "pi": "π", "infinity": "∞", "->": "→", "<=": "≤", ">=": "≥",
}  # fmt: skip
"""Names and signs in plain text that have a symbol."""
CALLS = {"abs": "|{0}|", "where": "{1} if {0}, else {2}"}
"""Functions of formulas that are written otherwise, by their arguments."""
BONDS = re.compile(r" (=|±|×|≤|≥|&lt;|&gt;) (?=\S)")
"""Signs that belong to what stands on either side of them."""
RAISED = str.maketrans("-−0123456789", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def power_of_ten(power: int, mantissa: str = "1") -> str:
    """A number in plain text, "2.5 × 10⁻³"."""
    return f"{mantissa} × 10{str(power).translate(RAISED)}".removeprefix("1 × ")


def typeset(text: str) -> str:
    """A formula or a text as it is printed: x³ for ``x**3`` or ``x^3``, 0.27 sign(x), τ for tau.

    ``abs(x)`` is |x|, ``where(x > 1, a, b)`` is "a if x > 1, else b", 1e-3 is 10⁻³, a minus is
    as long as a plus, and a dash between numbers of equations as long as a letter.
    """
    for name, wording in CALLS.items():
        text = _calls(text, name, wording)
    names = "|".join(one for one in SPELLED if one.isalpha())
    spelled = rf"(?<![^\W_])(?:{names})(?![^\W_])|->|<=|>="
    text = re.sub(spelled, lambda match: SPELLED[match[0]], text)
    # "n^-1/2" and "n^1/2" are meant as roots; "tau^2/2" is half a square.
    whole = r"(?:\*\*|\^)(?:(-\d+|1)(?!\d|[./]\d)|(\d+)(?!\d|\.\d|(?<=\^1)/\d))"
    text = re.sub(whole, lambda match: (match[1] or match[2]).translate(RAISED), text)
    scientific = r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)(?!\w)"
    text = re.sub(scientific, lambda match: power_of_ten(int(match[2]), match[1]), text)
    text = re.sub(r"(?<=[\w)|]) - (?=[\w(|])", " − ", text.replace(")-(", ")–("))
    text = re.sub(r"(?:(?<=^)|(?<=[\s(=,]))-(?=[\w(|])", "−", text)
    return re.sub(r"(?<=[\w)|])\s*\*\s*(?=[\w(|])", " ", text)


def _calls(text: str, name: str, wording: str) -> str:
    """A text in which every call of a function, the innermost first, is worded."""
    starts = [match.end() for match in re.finditer(rf"(?<![\w.]){name}\(", text)]
    for start in reversed(starts):
        arguments, depth, end = [""], 0, start
        while end < len(text) and (depth or text[end] != ")"):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if text[end] == "," and not depth:
                arguments.append("")
            else:
                arguments[-1] += text[end]
            end += 1
        if end < len(text) and len(arguments) == wording.count("{"):
            worded = wording.format(*(one.strip() for one in arguments))
            text = text[: start - len(name) - 1] + worded + text[end + 1 :]
    return text


def prose(text: str) -> Markup:
    """HTML of what a study says of itself, typeset.

    Indices of one letter stand below it (``tau_c``, ``dQ_j``), a letter above it that is its power
    (``R^D``), and powers in brackets (``n^(-2/3)``).
    """
    index = re.compile(r"(?<![^\W_])(d?[^\W\d_])_([A-Za-z0-9]{1,3})(?![A-Za-z0-9_])")
    html = index.sub(r"\1<sub>\2</sub>", escape(typeset(text)))
    html = re.sub(r"(?<![^\W_])([QR])0(?!\w)", r"\1<sub>0</sub>", html)
    html = re.sub(r"(?<=\w)\^([A-Za-z])(?!\w)", r"<sup>\1</sup>", html)
    power = re.compile(r"\^\(([-−]?[\w./]+)\)")
    return Markup(power.sub(lambda match: f"<sup>{match[1].replace('-', '−')}</sup>", html))


def formula(text: str) -> Markup:
    """HTML of equations in ASCII: as of :func:`prose`, and a digit after a letter is an index."""
    html = re.sub(r"(?<![^\W_])([A-Z])(\d)(?!\w)", r"\1<sub>\2</sub>", str(prose(text)))
    return Markup(re.sub(r"\b([A-Z][a-z]+)-(?=[A-Z][a-z])", r"\1–", html))


def unmarked(html: str) -> str:
    """HTML as plain text for a label, whose indices and powers are letters of their own."""
    html = re.sub(r"<sub>(\d+)</sub>", lambda match: match[1].translate(LOWERED), html)
    html = re.sub(r"<sup>([-−\d]+)</sup>", lambda match: match[1].translate(RAISED), html)
    return Markup(html).striptags()


def tied(html: str) -> Markup:
    """HTML (plain text is escaped) whose lines break within no equation, error or percentage."""
    bound = BONDS.sub("\u00a0\\1\u00a0", str(Markup.escape(html))).replace(" %", "\u00a0%")
    bound = re.sub(r"(?<=\(\w) ([−+]) (?=\w\))", "\u00a0\\1\u00a0", bound)
    return Markup(bound.replace("/√", "/\u2060√"))

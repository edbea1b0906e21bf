"""Symbols, numbers and colours as readers see them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colour-blind-safe colours (Okabe and Ito) that stand out from white and from near-black."""

SYMBOLS = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True)
class Text:
    """The same words as HTML for the page, TeX for print and plain text for sentences."""

    html: str
    tex: str
    plain: str

    def __add__(self, other: Text) -> Text:
        return Text(self.html + other.html, self.tex + other.tex, self.plain + other.plain)

    def __bool__(self) -> bool:
        return bool(self.plain)


def words(text: str) -> Text:
    """Plain words, escaped for HTML and for Matplotlib, where a dollar alone begins TeX."""
    return Text(escape(text), text.replace("$", r"\$"), text)


EMPTY = words("")
STEPS = Text("<i>n</i>³ steps", "$n^3$ steps", "n³ steps")
"""The unit of escape times."""

NAMED = {
    "tau": Text("τ", r"$\tau$", "τ"),
    "Q0": Text("Q<sub>0</sub>", "$Q_0$", "Q₀"),
    "rho": Text("ρ", r"$\rho$", "ρ"),
    "beta": Text("β", r"$\beta$", "β"),
    "omega": Text("ω", r"$\omega$", "ω"),
    "n": Text("<i>n</i>", "$n$", "n"),
    "t": Text("<i>t</i> = <i>k</i>/<i>n</i>", "$t = k/n$", "t = k/n"),
    "Q": Text("<i>Q</i>", "$Q$", "Q"),
    "q": Text("<i>q</i> = <i>Q</i>²", "$q = Q^2$", "q = Q²"),
    "|Q|": Text("|<i>Q</i>|", "$|Q|$", "|Q|"),
    "Q_u": Text("Q<sub>u</sub>", r"$Q_\mathrm{u}$", "Q_u"),
    "tau_c": Text("τ<sub>c</sub>", r"$\tau_\mathrm{c}$", "τ_c"),
    "mu_c": Text("μ<sub>c</sub>", r"$\mu_\mathrm{c}$", "μ_c"),
    "omega_c": Text("ω<sub>c</sub>", r"$\omega_\mathrm{c}$", "ω_c"),
    "nu": Text("ν", r"$\nu$", "ν"),
    "mu": Text("μ", r"$\mu$", "μ"),
    "eta": Text("η", r"$\eta$", "η"),
    "alpha": Text("α", r"$\alpha$", "α"),
    "sigma": Text("σ", r"$\sigma$", "σ"),
    "R": Text("<i>R</i>", "$R$", "R"),
    "R_ij": Text("<i>R<sub>ij</sub></i>", "$R_{ij}$", "R_ij"),
    "R0": Text("R<sub>0</sub>", "$R_0$", "R₀"),
    "r": Text("<i>r</i> = √<i>n</i> <i>R</i>", r"$r = \sqrt{n}\,R$", "r = √n R"),
    "U": Text("<i>U</i>(<i>r</i>)/<i>D</i>", "$U(r)/D$", "U(r)/D"),
    "xi": Text("ξ", r"$\xi$", "ξ"),
    "feature": Text("ξ", r"$\xi$", "ξ"),
    "snapshot": Text("<i>t</i>", "$t$", "t"),
    "regularizer": Text("φ", r"$\varphi$", "φ"),
    "x": Text("<i>x</i>", "$x$", "x"),
    "|x|": Text("|<i>x</i>|", "$|x|$", "|x|"),
    "g": Text(
        "<i>g</i>(<i>q</i>) = τ<sup>−1</sup> d<i>q</i>/d<i>t</i>",
        r"$g(q) = \tau^{-1}\,\mathrm{d}q/\mathrm{d}t$",
        "g(q) = (1/τ) dq/dt",
    ),
}
"""How the glossary's names are written; any other name is written as it is."""


def symbol(name: str) -> Text:
    """A parameter or variable as it is written in the field."""
    return NAMED.get(name) or words(name)


def measured(name: str) -> Text:
    """A variable as the label of an axis: "overlap Q", or the name that a user gave it."""
    return words("overlap ") + symbol(name) if name == "Q" else symbol(name)


def size(name: str) -> Text:
    """The absolute value of a variable."""
    return words("|") + symbol(name) + words("|")


def number(value: float, digits: int = 3) -> str:
    """A number to so many significant digits, without needless zeros."""
    value = float(value)
    if not np.isfinite(value):
        return "–"
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e7:
        text = f"{value:.0f}"
    mantissa, _, power = text.partition("e")
    text = f"{mantissa} × 10^{int(power)}" if power else mantissa
    return _superscript(text).replace("-", "−")


def rounded(value: float, digits: int = 2) -> str:
    """A large whole number that is known to so many digits, rounded up."""
    unit = 10.0 ** max(np.floor(np.log10(max(value, 1.0))) - digits + 1, 0)
    whole = float(np.ceil(value / unit - 1e-9) * unit)
    return count(whole) if whole < 1e7 else number(whole, digits)


def with_error(value: float, error: float) -> str:
    """A number with its standard error, both to the error's second digit."""
    if not error > 0:
        return number(value)
    digits = max(1 - int(np.floor(np.log10(error))), 0)
    return f"{value:.{digits}f} ± {error:.{digits}f}".replace("-", "−")


def count(value: float) -> str:
    """A whole number: powers of ten from 10^5 on as such, others with grouped digits."""
    whole = round(float(value))
    power = len(str(whole)) - 1
    if power >= 5 and whole == 10**power:
        return _superscript(f"10^{power}")
    return f"{whole:,}".replace(",", "\u202f") if whole >= 10_000 else str(whole)


def _superscript(text: str) -> str:
    before, _, power = text.partition("^")
    raised = power.translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return (
        (before + raised).replace("1 × 10", "10") if before.startswith("1 ×") else before + raised
    )


def value_of(value: Any) -> str:
    """A coordinate's value."""
    if isinstance(value, int | np.integer):
        return count(int(value))
    return number(float(value), 6) if isinstance(value, float | np.floating) else str(value)


def place(point: dict[str, Any]) -> Text:
    """A grid point, "τ = 0.05, Q₀ = 0.7"."""
    out = EMPTY
    for name, value in point.items():
        out = out + (words(", ") if out else EMPTY) + symbol(name) + words(f" = {value_of(value)}")
    return out


def probability(p: float) -> str:
    """A p-value as readers write it."""
    if not np.isfinite(p):
        return "–"
    return "< 10⁻⁴" if p < 1e-4 else number(p, 2)


def p_value(p: float) -> str:
    """A p-value in a sentence, with its symbol."""
    text = probability(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def plural(many: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count(many)} {noun}{'' if many == 1 else 's'}"

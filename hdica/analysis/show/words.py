"""Symbols, numbers and colours as readers see them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np
from markupsafe import Markup

from hdica.analysis import terms
from hdica.systems.system import Clock, Symbol

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colour-blind-safe colours (Okabe and Ito) that stand out from white and from near-black."""


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
GREEK = {
    "alpha": "α", "beta": "β", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "rho": "ρ",
    "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ", "omega": "ω",
    "Gamma": "Γ", "Delta": "Δ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
"""Greek letters by their names, but for ``gamma`` and ``chi``, which are names of laws as well."""
OVERLAP = "overlap "
ROUNDING = 1e-13
"""Of numbers of order one: a standard error below it is none."""
STEPS = Text("<i>n</i>³ steps", "$n^3$ steps", "n³ steps")
"""The unit of escape times."""
SQUARED_STEPS = Text("<i>n</i>² steps", "$n^2$ steps", "n² steps")
"""The same of traps that are left sooner."""

NAMED = {
    "Q0": Text("<i>Q</i><sub>0</sub>", "$Q_0$", "Q₀"),
    "n": Text("<i>n</i>", "$n$", "n"),
    "t": Text("<i>t</i> = <i>k</i>/<i>n</i>", "$t = k/n$", "t = k/n"),
    "gamma": Text("γ", r"$\gamma$", "γ"),
    "feature": Text("ξ", r"$\xi$", "ξ"),
    "group": Text("ξ", r"$\xi$", "ξ"),
    "snapshot": Text("<i>t</i>", "$t$", "t"),
    "regularizer": Text("φ", r"$\varphi$", "φ"),
    "x": Text("<i>x</i>", "$x$", "x"),
    "|x|": Text("|<i>x</i>|", "$|x|$", "|x|"),
}
"""How parameters and dimensions are written; order parameters are as their systems say, and of any
other name Greek letters and single letters are typeset."""

SCALED = Clock().units
"""The unit of time where nothing else is said: t = k/n."""

ABBREVIATED = 3
"""Letters of a method's name that is an abbreviation, and is written in capitals."""

CALLED = {"tau": "step size ", "rho": "sparsity "}
"""What comes before a parameter where there is room for it."""


def symbol(name: str) -> Text:
    """A parameter or variable as it is written in the field.

    A constant of the formulas, ``constants.beta`` or ``constants_beta``, is written as its name.
    """
    name = re.sub(r"^constants[._]", "", name)
    return NAMED.get(name) or written(name) or _letter(name) or words(name.replace("_", " "))


def _letter(name: str) -> Text | None:
    """A Greek or single letter with its index, as "nu2" or "c_1"; None for any other name."""
    letters = "|".join(sorted(GREEK, key=len, reverse=True))
    match = re.fullmatch(rf"({letters}|[^\W\d_])_?(\d*)", name)
    if match is None:
        return None
    letter, index = match.groups()
    greek = GREEK.get(letter)
    html, tex = (greek, rf"\{letter}") if greek else (f"<i>{letter}</i>", letter)
    if not index:
        return Text(html, f"${tex}$", greek or letter)
    lower = _lowered(index)
    return Text(f"{html}<sub>{index}</sub>", f"${tex}_{{{index}}}$", (greek or letter) + lower)


def _lowered(index: str) -> str:
    return index.translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def clock(time: Mapping[Any, Any]) -> Text:
    """Time as the label of an axis, by the attributes of its dimension: "t = k/n", "t (steps)"."""
    units = str(time.get("units", SCALED))
    if units.startswith(SCALED):
        return symbol("t")
    return Text("<i>t</i>", "$t$", "t") + words(f" ({units})")


def written(name: str) -> Text | None:
    """A name as a system says that it is written, None if none does."""
    return _text(terms.written(name))


def method_name(name: object) -> Text:
    """A method as the system that is spoken of calls it, or else by its name in words."""
    plain = str(name)
    return _text(terms.own(plain)) or words(_spelt(plain))


def _spelt(name: str) -> str:
    return name.upper() if len(name) == ABBREVIATED else name.replace("_", " ")


def capital(text: str) -> str:
    """A sentence that begins with a capital letter, unless it begins with a formula."""
    return f"{text[:1].upper()}{text[1:]}" if text[:4].isalpha() else text


def limit_name(method: object) -> Text:
    """A limit in a legend, with its method."""
    return words("limit (") + method_name(method) + words(")")


def _text(found: Symbol | None) -> Text | None:
    return None if found is None else Text(found.html, found.tex, found.plain)


def measured(name: str) -> Text:
    """A variable as the label of an axis: "overlap Q", or the name that a user gave it."""
    return words(_noun(name)) + symbol(name)


def _noun(name: str) -> str:
    """What an order parameter is; an entry of a matrix is known by its symbol."""
    numbers = [p for p in terms.order_parameters(name) if not p.dims]
    return OVERLAP if any(p.meaning.startswith(OVERLAP) for p in numbers) else ""


def axis(name: str) -> Text:
    """A swept parameter as the label of an axis."""
    return words("initial overlap " if name in terms.starts() else CALLED.get(name, "")) + symbol(
        name
    )


def critical(name: str) -> Text:
    """The critical value of a parameter."""
    return written(f"{name}_c") or words(f"critical {name}".strip())


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


def simple(value: float) -> str:
    """A number, as a fraction of small whole numbers where it is one that has no short decimals."""
    near = Fraction(value).limit_denominator(9)
    if value == round(value, 3) or abs(float(near) - value) > 1e-6 * abs(value):
        return number(value)
    return str(near).replace("-", "−")


def rounded(value: float, digits: int = 2) -> str:
    """A large whole number that is known to so many digits, rounded up."""
    unit = 10.0 ** max(np.floor(np.log10(max(value, 1.0))) - digits + 1, 0)
    whole = float(np.ceil(value / unit - 1e-9) * unit)
    return count(whole) if whole < 1e7 else number(whole, digits)


def with_error(value: float, error: float) -> str:
    """A number with its standard error, both to the error's second digit.

    An error that is mere rounding of numbers of order one or larger is none.
    """
    if not error > ROUNDING * max(abs(value), 1.0):
        return number(value)
    digits = max(1 - int(np.floor(np.log10(error))), 0)
    return f"{value:.{digits}f} ± {error:.{digits}f}".replace("-", "−")


def measurement(value: float, error: float) -> str:
    """A number with its standard error, large and small ones as "(1.703 ± 0.010) × 10⁶".

    Without an error, or with an infinite one, to four digits.
    """
    value, error = float(value), float(error)
    if not np.isfinite(value):
        return number(value)
    power = int(np.floor(np.log10(abs(value)))) if value != 0 else 0
    if -3 <= power < 5:
        known = error > 0 and np.isfinite(error)
        return with_error(value, error) if known else number(value, 4)
    unit = 10.0**power
    raised = _superscript(f"10^{power}")
    if not (error > 0 and np.isfinite(error)):
        return f"{number(value / unit, 4)} × {raised}".removeprefix("1 × ")
    return f"({with_error(value / unit, error / unit)}) × {raised}"


def resolved(value: float, error: float) -> str:
    """A number to two decimals, or to the first digit of a smaller error."""
    if not np.isfinite(value):
        return "–"
    digits = 2 if not error > 0 else min(max(-int(np.floor(np.log10(error))), 2), 9)
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # no minus before 0


def count(value: float) -> str:
    """A whole number: powers of ten from 10^5 on as such, others with grouped digits."""
    whole = round(float(value))
    power = len(str(whole)) - 1
    if power >= 5 and whole == 10**power:
        return _superscript(f"10^{power}")
    return f"{whole:,}".replace(",", "\u202f") if whole >= 10_000 else str(whole)


def _superscript(text: str) -> str:
    before, _, power = text.partition("^")
    return (before + _raised(power)).removeprefix("1 × ")


def raised_ten(power: int) -> str:
    """A power of ten in plain text."""
    return f"10{_raised(str(power))}"


def _raised(power: str) -> str:
    return power.translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


SPELLED = {**GREEK, "eps": "ε", "sqrt": "√", "pi": "π", "infinity": "∞"}
"""Names in plain text that have a symbol."""
SIGNS = {"->": "→", "<=": "≤", ">=": "≥"}


VALUES = {name.lower(): name for name in ("Rademacher", "Laplace", "Gauss", "Bernoulli")}
"""Laws that are named after people, as values of swept parameters."""


def typeset(text: str) -> str:
    """A formula or a text as it is printed: x³ for ``x**3`` or ``x^3``, 0.27 sign(x), τ for tau.

    ``abs(x)`` is |x|, ``where(x > 1, a, b)`` is "a if x > 1, else b", 1e-3 is 10⁻³, a minus is
    as long as a plus, and a dash between numbers of equations as long as a letter.
    """
    for name, wording in CALLS.items():
        text = _calls(text, name, wording)
    spelled = re.compile(rf"(?<![^\W_])({'|'.join(SPELLED)})(?![^\W_])")
    text = spelled.sub(lambda found: SPELLED[found[1]], text)
    text = re.sub("|".join(SIGNS), lambda match: SIGNS[match[0]], text)
    # "n^-1/2" and "n^1/2" are meant as roots; "tau^2/2" is half a square.
    whole = r"(?:\*\*|\^)(?:(-\d+|1)(?!\d|[./]\d)|(\d+)(?!\d|\.\d|(?<=\^1)/\d))"
    text = re.sub(whole, lambda match: _raised(match[1] or match[2]), text)
    text = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)(?!\w)", _scientific, text)
    text = re.sub(r"(?<=[\w)|]) - (?=[\w(|])", " − ", text.replace(")-(", ")–("))
    text = re.sub(r"(?:(?<=^)|(?<=[\s(=,]))-(?=[\w(|])", "−", text)
    return re.sub(r"(?<=[\w)|])\s*\*\s*(?=[\w(|])", " ", text)


def _scientific(found: re.Match[str]) -> str:
    """A number as "2.5e-3" is typed, "2.5 × 10⁻³"."""
    return f"{found[1]} × {raised_ten(int(found[2]))}".removeprefix("1 × ")


CALLS = {"abs": "|{0}|", "where": "{1} if {0}, else {2}"}
"""Functions of formulas that are written otherwise, by their arguments."""


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
    return Markup(power.sub(lambda found: f"<sup>{found[1].replace('-', '−')}</sup>", html))


def formula(text: str) -> Markup:
    """HTML of equations in ASCII, typeset: beyond :func:`prose` a digit after a letter is an index.

    A dash between two people is longer than a hyphen.
    """
    html = re.sub(r"(?<![^\W_])([A-Z])(\d)(?!\w)", r"\1<sub>\2</sub>", str(prose(text)))
    return Markup(re.sub(r"\b([A-Z][a-z]+)-(?=[A-Z][a-z])", r"\1–", html))


def unmarked(html: str) -> str:
    """HTML as plain text for a label, whose indices and powers are letters of their own."""
    html = re.sub(r"<sub>(\d+)</sub>", lambda match: _lowered(match[1]), html)
    html = re.sub(r"<sup>([-−\d]+)</sup>", lambda match: _raised(match[1].replace("−", "-")), html)
    return Markup(html).striptags()


BONDS = re.compile(r" (=|±|×|≤|≥|&lt;|&gt;) (?=\S)")
"""Signs that belong to what stands on either side of them."""


def tied(html: str) -> Markup:
    """A sentence whose lines break within no equation, figure with its error, or percentage.

    What is not marked as HTML is escaped.
    """
    safe = str(Markup.escape(html))
    bound = BONDS.sub("\u00a0\\1\u00a0", safe).replace(" %", "\u00a0%")
    bound = re.sub(r"(?<=\(\w) ([−+]) (?=\w\))", "\u00a0\\1\u00a0", bound)
    return Markup(bound.replace("/√", "/\u2060√"))


def sentence(text: str) -> str:
    """A long name of a variable as a title: the first letter large, a formula as it is printed."""
    text = typeset(text)
    text = re.sub(r"(?<=\b\w)\.(?=\w\b)", "·", text)
    return text[:1].upper() + text[1:]


def value_of(value: Any) -> str:
    """A coordinate's value."""
    if isinstance(value, int | np.integer):
        return count(int(value))
    if isinstance(value, float | np.floating):
        return number(float(value), 6)
    text = str(value)
    known = VALUES.get(text)
    own = None if known else terms.own(text)
    return known or (own.plain if own else typeset(text))


def place(point: dict[str, Any]) -> Text:
    """A grid point, "τ = 0.05, Q₀ = 0.7"; an entry of a matrix by its symbol, "R₁₂"."""
    matrix = terms.own_matrix(point)
    out = EMPTY if matrix is None else _entry(matrix.name, [point[d] for d in matrix.dims])
    for name, value in point.items():
        if matrix is None or name not in matrix.dims:
            out = out + (words(", ") if out else EMPTY) + at(name, value)
    return out


def at(name: str, value: Any) -> Text:
    """A parameter at a value, "τ = 0.05"; what numbers entries of a matrix counts from 1."""
    if is_numbered(name) and not isinstance(value, str):
        return symbol(name) + words(f" {int(value) + 1}")
    return symbol(name) + words(f" = {value_of(value)}")


def is_numbered(name: str) -> bool:
    """Whether a dimension numbers entries of a matrix."""
    return name not in NAMED and terms.numbers_entries(name)


def _entry(name: str, numbers: list[Any]) -> Text:
    """An entry of a matrix by its numbers, which are counted from 0."""
    counted = [str(int(one) + 1) for one in numbers]
    index = ("," if max(map(len, counted)) > 1 else "").join(counted)
    return Text(f"<i>{name}</i><sub>{index}</sub>", f"${name}_{{{index}}}$", name + _lowered(index))


def of_n(n: float, name: str = "") -> Text:
    """A dimension, and the method if there are several: "n = 400, vector"."""
    size = symbol("n") + words(f" = {count(n)}")
    return size + words(", ") + method_name(name) if name else size


def named_at(method: str, n: float) -> Text:
    """A method, and the dimension if it has any: "vector, n = 400"."""
    name = method_name(method)
    return name + words(", ") + of_n(n) if np.isfinite(n) else name


def titled(lead: Text, point: dict[str, Any]) -> Text:
    """A title with the grid point to which it applies, if there are several."""
    return lead + words(" · ") + place(point) if point else lead


def leading(point: dict[str, Any]) -> Text:
    """A grid point, if there are several, before what else names a curve."""
    return place(point) + words(", ") if point else EMPTY


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

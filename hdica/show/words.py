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

from hdica.show import terms
from hdica.show.typeset import GREEK, LOWERED, power_of_ten, typeset
from hdica.systems.system import Clock, Symbol
from hdica.systems.values import SAMPLE

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colour-blind-safe colours (Okabe and Ito) that stand out from white and from near-black."""


@dataclass(frozen=True)
class Text:
    """The same words as HTML for the page, TeX for print and plain text for sentences."""

    html: str
    tex: str
    plain: str

    def __add__(self, other: Text | str) -> Text:
        end = words(other) if isinstance(other, str) else other
        return Text(self.html + end.html, self.tex + end.tex, self.plain + end.plain)

    def __radd__(self, other: str) -> Text:
        return words(other) + self

    def __bool__(self) -> bool:
        return bool(self.plain)


def words(text: str) -> Text:
    """Plain words, escaped for HTML and for Matplotlib, where a dollar alone begins TeX."""
    return Text(escape(text), text.replace("$", r"\$"), text)


EMPTY = words("")
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
"""The default unit of time: t = k/n."""
ABBREVIATED = 3
"""Letters of a method's name that is an abbreviation, and is written in capitals."""
CALLED = {"tau": "step size ", "rho": "sparsity "}
"""What comes before a parameter where there is room for it."""


def symbol(name: str) -> Text:
    """A parameter, a constant of formulas or a variable as it is written in the field."""
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
    plain = (greek or letter) + index.translate(LOWERED)
    return Text(f"{html}<sub>{index}</sub>", f"${tex}_{{{index}}}$", plain)


def clock(time: Mapping[Any, object]) -> Text:
    """Time as the label of an axis, by the attributes of its dimension: "t = k/n", "t (steps)"."""
    units = str(time.get("units", SCALED))
    if units.startswith(SCALED):
        return symbol("t")
    return NAMED["snapshot"] + f" ({units})"


def written(name: str) -> Text | None:
    """A name as a system says that it is written, None if none does."""
    return _text(terms.written(name))


def method_name(name: object) -> Text:
    """A method as the system that is spoken of calls it, or else by its name in words."""
    plain = str(name)
    spelt = plain.upper() if len(plain) == ABBREVIATED else plain.replace("_", " ")
    return _text(terms.own(plain)) or words(spelt)


def capital(text: str) -> str:
    """A sentence that begins with a capital letter, unless it begins with a formula."""
    return f"{text[:1].upper()}{text[1:]}" if text[:1].isascii() else text


def limit_name(method: object) -> Text:
    """A limit in a legend, with its method."""
    return "limit (" + method_name(method) + ")"


def _text(name: Symbol | None) -> Text | None:
    return None if name is None else Text(name.html, name.tex, name.plain)


def measured(name: str) -> Text:
    """A variable as the label of an axis: "overlap Q", or the name that a user gave it.

    An entry of a matrix goes by its symbol.
    """
    numbers = [p for p in terms.order_parameters(name) if not p.dims]
    return (OVERLAP if any(p.meaning.startswith(OVERLAP) for p in numbers) else "") + symbol(name)


def axis(name: str) -> Text:
    """A swept parameter as the label of an axis, with those that go together with it."""
    lead = "initial overlap " if name in terms.starts() else CALLED.get(name, "")
    others = [symbol(one) for one in terms.together(name) if one != name]
    own = lead + symbol(name)
    if not others or name not in terms.together(name):
        return own
    return own + ", with " + joined(*others)


def critical(name: str) -> Text:
    """The critical value of a parameter."""
    return written(f"{name}_c") or words(f"critical {name}".strip())


def size(name: str) -> Text:
    """The absolute value of a variable."""
    return "|" + symbol(name) + "|"


def number(value: float, digits: int = 3) -> str:
    """A number to so many significant digits, without needless zeros."""
    value = float(value)
    if not np.isfinite(value):
        return "–"
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e7:
        text = f"{value:.0f}"
    mantissa, _, power = text.partition("e")
    return (power_of_ten(int(power), mantissa) if power else mantissa).replace("-", "−")


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
    """A number with its standard error, if more than rounding, both to the error's second digit."""
    if not error > ROUNDING * max(abs(value), 1.0):
        return number(value)
    digits = max(1 - int(np.floor(np.log10(error))), 0)
    return f"{value:.{digits}f} ± {error:.{digits}f}".replace("-", "−")


def measurement(value: float, error: float) -> str:
    """A number with its error, such as "(1.703 ± 0.010) × 10⁶"; without one to four digits."""
    value, error = float(value), float(error)
    if not np.isfinite(value):
        return number(value)
    known = error > 0 and np.isfinite(error)
    scale = max(abs(value), error) if known else abs(value)
    power = int(np.floor(np.log10(scale))) if scale else 0
    plain = -3 <= power < 5
    unit = 1.0 if plain else 10.0**power
    text = with_error(value / unit, error / unit) if known else number(value / unit, 4)
    return text if plain else power_of_ten(power, f"({text})" if known else text)


def count(value: float) -> str:
    """A whole number: powers of ten from 10^5 on as such, others with grouped digits."""
    whole = round(float(value))
    power = len(str(whole)) - 1
    if power >= 5 and whole == 10**power:
        return power_of_ten(power)
    return f"{whole:,}".replace(",", "\u202f") if whole >= 10_000 else str(whole)


VALUES = {name.lower(): name for name in ("Rademacher", "Laplace", "Gauss", "Bernoulli")}
"""Laws that are named after people, as values of swept parameters."""


def sentence(text: str) -> str:
    """A long name of a variable as a title: the first letter large, a formula as it is printed."""
    text = re.sub(r"(?<=\b\w)\.(?=\w\b)", "·", typeset(text))
    return text[:1].upper() + text[1:]


def value_of(value: object) -> str:
    """A coordinate's value."""
    if isinstance(value, int | np.integer):
        return count(int(value))
    if isinstance(value, float | np.floating):
        numeric = float(value)
        whole = numeric.is_integer() and abs(numeric) >= 1e4
        return count(numeric) if whole else number(numeric, 6)
    own = terms.own(str(value))
    return VALUES.get(str(value)) or (own.plain if own else typeset(str(value)))


def place(point: Mapping[str, object]) -> Text:
    """A grid point, "τ = 0.05, Q₀ = 0.7"; an entry of a matrix by its symbol, "R₁₂".

    A case is followed by the parameters that go together in it.
    """
    record = terms.speaker()
    known = () if record is None else record.order_parameters
    matrix = next((p for p in known if p.dims and set(p.dims) <= point.keys()), None)
    own = () if matrix is None else matrix.dims
    entry = EMPTY if matrix is None else _entry(matrix.name, {d: point[d] for d in own})
    parts = [_with_case(name, value, point) for name, value in point.items() if name not in own]
    return joined(entry, *parts)


def _with_case(name: str, value: object, point: Mapping[str, object]) -> Text:
    """A parameter at a value, and what goes together with it and is not in the point by itself."""
    others = {k: v for k, v in terms.together(name, value).items() if k not in point}
    lead = EMPTY if terms.is_spelled_out(name, value) else at(name, value)
    if name == SAMPLE:  # where the numbers are drawn, and none is round
        others = {k: float(number(float(v), 4)) for k, v in others.items()}
    return joined(lead, *(at(k, v) for k, v in others.items()))


def at(name: str, value: object) -> Text:
    """A parameter at a value, "τ = 0.05"; what numbers entries of a matrix counts from 1."""
    numbered = is_numbered(name) and not isinstance(value, str)
    return symbol(name) + (f" {counted(name, value)}" if numbered else f" = {value_of(value)}")


def is_numbered(name: str) -> bool:
    """Whether a dimension numbers entries of a matrix, in the system that is spoken of if any."""
    return name not in NAMED and name in terms.entries()


def counted(name: str, value: Any) -> int:
    """The number of an entry of a matrix as it is written, from 1, of its number in datasets."""
    record = terms.speaker()
    dimensions = () if record is None else record.dimensions
    return int(value) + 1 - next((dim.first for dim in dimensions if dim.name == name), 0)


def _entry(name: str, numbers: Mapping[str, object]) -> Text:
    """An entry of a matrix by its number along each dimension."""
    written = [str(counted(dim, value)) for dim, value in numbers.items()]
    index = ("," if max(map(len, written)) > 1 else "").join(written)
    plain = name + index.translate(LOWERED)
    return Text(f"<i>{name}</i><sub>{index}</sub>", f"${name}_{{{index}}}$", plain)


def of_n(n: float, name: str = "") -> Text:
    """A dimension, and the method if there are several: "n = 400, vector"."""
    return joined(symbol("n") + f" = {count(n)}", method_name(name) if name else EMPTY)


def named_at(method: str, n: float) -> Text:
    """A method, and the dimension if it has any: "vector, n = 400"."""
    return joined(method_name(method), of_n(n) if np.isfinite(n) else EMPTY)


def joined(*parts: Text) -> Text:
    """The parts that say something, separated by commas."""
    out = EMPTY
    for part in filter(None, parts):
        out = out + ", " + part if out else part
    return out


def titled(lead: Text, point: Mapping[str, object]) -> Text:
    """A title with the grid point to which it applies, if there are several."""
    return lead + " · " + place(point) if point else lead


def leading(point: Mapping[str, object]) -> Text:
    """A grid point, if there are several, before what else names a curve."""
    return place(point) + ", " if point else EMPTY


def p_value(p: float) -> Markup:
    """HTML of a p-value in a sentence, with its symbol."""
    return Markup.escape("p < 10⁻⁴" if p < 1e-4 else f"p = {number(p, 2)}")


def plural(many: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count(many)} {noun}{'' if many == 1 else 's'}"

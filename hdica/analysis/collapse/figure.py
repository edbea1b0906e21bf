"""Points of every n on one curve, and beside them the same points with wrong powers of n."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from hdica.analysis.collapse.compute import power
from hdica.show.marks import SHARES, SYMBOLS, bars, captioned, color_of, interval
from hdica.show.panel import Item, Line, Panel, Points
from hdica.show.words import Text, of_n, plural, symbol, words

CONTROLS = {
    "fold": "scaled distance to the fold " + Text("ε", r"$\varepsilon$", "ε"),
    "separatrix": "distance to the unstable overlap " + Text("<i>z</i>", "$z$", "z"),
    "pitchfork": "scaled distance to the pitchfork " + Text("<i>x</i>", "$x$", "x"),
}
LAWS = {
    "fold": Text("<i>F</i>(ε)", r"$F(\varepsilon)$", "F(ε)"),
    "separatrix": Text("Φ(<i>z</i>)", r"$\Phi(z)$", "Φ(z)"),
    "pitchfork": Text("Ψ(<i>x</i>)", r"$\Psi(x)$", "Ψ(x)"),
}


def quantity(data: xr.Dataset) -> Text:
    """What is measured, in the units in which it collapses."""
    kind = str(data.attrs["kind"])
    if kind == "fold":
        return "time of the fall / (" + power(1 / 3) + " times its scale)"
    if kind == "separatrix":
        return words("share of runs that go up")
    name = symbol(str(data.attrs["variable"]))
    square = Text(f"⟨{name.html}²⟩", f"$\\langle$ {name.tex}$^2\\rangle$", f"⟨{name.plain}²⟩")
    return square + " / (" + power(-1 / 2) + " times its scale)"


def collapse(data: xr.Dataset) -> list[Panel]:
    """The points on the law, and the control."""
    return [_panel(data, ""), _panel(data, "_control")]


def _panel(data: xr.Dataset, tail: str) -> Panel:
    kind, sizes = str(data.attrs["kind"]), data["n"].values
    at = data[f"curve{tail}_at" if tail else "at"].values
    items: list[Line | Points] = [Line(at, data[f"curve{tail}"].values, LAWS[kind], "ink")]
    for k, n in enumerate(sizes):
        here, mark = data.sel(n=n), SYMBOLS[k % len(SYMBOLS)]
        x, found = here[f"x{tail}"].values.ravel(), interval(here, f"y{tail}")
        inside = (x >= at[0]) & (x <= at[-1])
        drawn = [values.ravel()[inside] for values in found]
        items += bars(x[inside], drawn, of_n(int(n)), color_of(k, len(sizes)), symbol=mark)
    wrong = " wrong powers of " + symbol("n")
    return Panel(
        f"collapse{tail}",
        "Control:" + wrong if tail else words("No exponent fitted"),
        CONTROLS[kind],
        "the same with" + wrong if tail else quantity(data),
        tuple(items),
        _caption(data, items, tail),
        log_y=kind == "fold",
        x_range=(float(at[0]), float(at[-1])),
        y_range=SHARES if kind == "separatrix" else None,
    )


def _caption(data: xr.Dataset, items: Sequence[Item], tail: str) -> str:
    if tail:
        return (
            "The same points and the same law as if the powers of <i>n</i> were others: "
            f"{windows(data, 'wrong_')} Right at the geometric mean of the <i>n</i>."
        )
    sentences = {
        "points": "Points: runs with 95 % intervals, without what the prediction at their "
        "<i>n</i> has beyond the law of all <i>n</i>.",
        "solid": f"Line: the law {LAWS[str(data.attrs['kind'])].html}, without a parameter.",
    }
    out = [*captioned(items, sentences), windows(data)]
    x, at = data["x"].where(data["score"].notnull()).values, data["at"].values
    many = int(((x < at[0]) | (x > at[-1])).sum())
    if many:
        out.append(f"{plural(many, 'point')} farther out {'is' if many == 1 else 'are'} not drawn.")
    return " ".join(out)


def windows(data: xr.Dataset, tail: str = "") -> str:
    """How the window and what is measured scale with n."""
    window, size = (float(data.attrs[f"{tail}{k}"]) for k in ("window", "size"))
    text = f"The window shrinks as {power(-window).html}"
    kind = str(data.attrs["kind"])
    if kind == "separatrix":
        return f"{text}."
    what = "times grow" if kind == "fold" else f"{symbol(str(data.attrs['variable'])).html}² goes"
    return f"{text}, {what} as {power(size).html}."

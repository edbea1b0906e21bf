"""Study files with something wrong in them: in a value, in the text, in the bytes."""

from __future__ import annotations

import copy
import io
import json
from typing import Any

from hypothesis import strategies as st
from ruamel.yaml import YAML

from tests.fuzz.valid import studies

Draw = Any
FORMULAS = [
    "", " ", "x.__class__", "__import__('os').system('touch pwned')", "lambda: 0", "x if x else 1",
    "[x for x in ()]", "x**(10**12)", "x**(1e12**30)", "9**9**9**9", "x**x", "(x**32)**32",
    "exp(exp(exp(exp(9))))", "sin(exp(exp(exp(9))))", "sign(sin(exp(exp(9))) - 1/3)",
    "log(x)", "sqrt(-1)", "1/0", "x/(x-x)", "tan(x)", "pi**pi**pi", "1e400", "0x10", "1_0",
    "x" * 301,
    "exp(" * 60 + "x" + ")" * 60, "(" * 200, "+" * 299 + "x", "x,", "x y", "x;x", "'x'", "b'x'",
    "f'{x}'", "x@x", "x//2", "~x", "not x", "x<1", "x[0]", "x(1)", "exp(x, 2)", "exp()", "exp(*x)",
    "exp(x=1)", "True", "1j", "...", "nan", "inf", "x + nan", "x\x00", "ẋ**3", "x²", "٣*x",
    "cosh(1000)*x", "tanh(x)**31", "sign(exp(x))", "1e12**32*x", "1/3**30*x**2",
    "(x+1)**31*(x-1)**31", "x*exp(-1e12*x**2)", "1e12**32*x", "x**sqrt(-1)",
    "exp(exp(exp(exp(9))))*x",
    "sign(exp(exp(exp(exp(9))))-1)", "abs(x" * 30 + ")" * 30,
]  # fmt: skip
SLOW = [
    "abs(1/x)", "erf(1/x)", "exp(-x**32)", "abs(x)**0.3333", "sin(x*10**12)*10**12", "abs(x**32-1)",
    "abs((x-1)**15*(x+1)**15)", "abs(abs(abs(x)-1)-1)", "sign(sin(x))",
]  # fmt: skip
"""Formulas whose averages do not converge: to find that out takes seconds."""
JUNK: list[Any] = [
    None, True, False, "", [], {}, [[]], [None], {"a": {"b": []}}, -1, 0, 1, 3, 1e-320, 1e308,
    -1e308,
    float("inf"), float("-inf"), float("nan"), 10**30, 10**300, -(10**30), 2**53 + 1, 0.1, "0.1",
    "x",
    "x" * 5000, "\u202e", "ß", "九", "x\ny", "../../etc/passwd", "/tmp/x", "a/b", "a\\b", "~", "*",
    "!x",
    "2020-01-01", "1e3", ".nan", "yes", "1:30", {"start": 0, "stop": 1, "num": 10**9},
    {"start": 0, "stop": 1, "num": 2.5}, {"start": 1, "stop": 2, "num": 3, "spacing": "cubic"},
    {"start": "a", "stop": 1, "num": 3}, {"stop": 1e308, "start": -1e308, "num": 3},
    {"start": 1e-300, "stop": 1e300, "num": 5, "spacing": "log"}, {"stop": 1, "num": 10**30},
    {"scipy": "norm"}, {"scipy": "__class__"}, {"scipy": "gamma"}, {"scipy": "gamma", "a": -1},
    {"scipy": "gamma", "a": "b"}, {"scipy": "gamma", "a": None}, {"scipy": "gamma", "a": [1]},
    {"scipy": "cauchy"}, {"scipy": ["gamma"]}, {"scipy": "norm", "loc": 1e300},
    {"scipy": "norm", "size": 3}, {"scipy": "beta", "a": 1e-9, "b": 1e9}, {"student": 2},
    {"student": 1e300}, {"student": float("inf")}, {"chi2": 1e300}, {"chi2": float("inf")},
    {"chi2": 1e-300}, {"chi2": True}, {"bernoulli_gaussian": 0}, {"bernoulli_gaussian": 1e-300},
    {"discrete": {"values": [1, 1]}}, {"discrete": {"values": [1, "a"]}}, {"discrete": {}},
    {"discrete": {"values": [1e308, -1e308]}}, {"discrete": {"values": [[1], [2]]}},
    {"discrete": {"values": [0, 1], "weights": [1]}}, {"discrete": {"values": None}},
    {"discrete": {"values": [0, 1e-200]}}, {"discrete": {"values": {"a": 1}}}, {"discrete": []},
    {"sparse": 0}, {"sparse": 2}, {"sparse": "a"}, {"sparse": 1e-300}, {"sparse": [0.1]},
    {"atoms": [1], "weights": []}, {"atoms": "a", "weights": "b"}, {"atoms": [1e300],
    "weights": [1]},
    {"atoms": [[1, 2], [3]], "weights": [1, 2]}, {"atoms": [1, 2], "weights": [1e308, 1e308]},
    {"atoms": None, "weights": None}, {"atoms": [1e-320], "weights": [1]}, {"overlap": "a"},
    {"overlap": 2}, {"overlap": None}, {"overlap": True}, {"overlap": 0.1, "exact": "yes"},
    {"normal": {"mean": 1e200, "var": 1}}, {"normal": {"mean": 0, "var": 0}}, {"normal": []},
    {"normal": {"mean": 1}}, {"normal": {"mean": "a", "var": 1}}, {"steps": None}, {"steps": {}},
    {"steps": {"times": [2, 1], "values": [1, 1, 1]}}, {"steps": {"times": [[1]], "values": [1,
    2]}},
    {"steps": {"times": ["a"], "values": [1, 2]}}, {"steps": {"times": [1], "values": [1, 1e400]}},
    {"steps": {"times": [float("nan")], "values": [1, 2]}}, {"steps": {"times": 1, "values": 2}},
    {"functionals": {"Q": "x"}}, {"functionals": {"a b": "x"}}, {"functionals": {"x" * 300: "x"}},
    {"snapshots": [1]}, {"x": [1, 2]}, {"n": [10**30], "seeds": 1}, {"n": [10], "seeds": [2**60]},
    {"n": [10], "seeds": 10**9}, [1, 1], [1, 2, "a"], [float("nan")], [0.1, 0.1 + 1e-17], [[1],
    [2]],
    [*range(300)], {"x": "tau", "y": "tau"}, {"curves": []}, {"simulation": {}}, {"level": 2},
]  # fmt: skip
NAMES = [
    "", " ", "study", "tau", "Q0", "beta", "x", "n", "seed", "time", "__class__", "a.b",
    "start.overlap",
    "prior.sparse", "source.scipy", "start.normal.mean", "source.../../x", "constants.beta",
    "start.",
    ".start", "tau.x", "σ", "\u202e", "x" * 300, "0", "None", "<<", "=", "Q", "density",
    "critical", "pde",
]  # fmt: skip
TEXTS = [
    "\x00", "\x1b[31m", "\ufeff", "\u2028", "\u0085", "\t", "&a ", "*a ", "*missing ", "<<: *a\n",
    "!!python/object/apply:os.system ['touch pwned']", "!!python/name:os.system ",
    "!!binary aGVsbG8= ",
    "!!set {a} ", "!!int '' ", "!!float x ", "!!bool x ", "!!timestamp x ", "!!omap [] ",
    "!local x ",
    "%YAML 1.1\n---\n", "%TAG ! tag:x,2000:\n---\n", "---\n", "...\n", "? ", "| ", "> ", "{", "[",
    "}",
    "]", ":", ": ", "- ", ",", "#", "'", '"', "\\", "@", "`", "0x" + "f" * 5000, "9" * 5000,
    "1e999999999",
    "\n", "\r\n", "study: fuzz\n", "{a: {a: {a: {", "[[[[[[[[", "\U0001f600", "\ud800", "\\uD800",
    '"\\x07"',
]  # fmt: skip


def laughs(depth: int, width: int, merge: bool) -> str:
    """Aliases of aliases: a file of a kilobyte that stands for width**depth values."""
    if merge:
        lines = ["a0: &a0 {x: 1, y: 2}"]
        some = ", ".join(["*a{}"] * width)
        lines += [f"a{i}: &a{i} {{<<: [{some.format(*[i - 1] * width)}]}}" for i in range(1, depth)]
    else:
        lines = ["a0: &a0 [lol, lol]"]
        some = ", ".join(["*a{}"] * width)
        lines += [f"a{i}: &a{i} [{some.format(*[i - 1] * width)}]" for i in range(1, depth)]
    return "\n".join(lines) + f"\nparameters: *a{depth - 1}\n"


def nested(depth: int, kind: str) -> str:
    """Lists or mappings in each other."""
    start, end = ("[", "]") if kind == "list" else ("{a: ", "}")
    if kind == "block":
        return "parameters:\n" + "- " * depth + "1\n"
    return "parameters: " + start * depth + "1" + end * depth + "\n"


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            found += _paths(inner, (*path, key))
    return found


SPECS = {
    "source": ("scipy", "student", "chi2", "bernoulli_gaussian", "discrete"),
    "prior": ("sparse", "atoms", "bernoulli_gaussian"),
    "start": ("overlap", "normal"),
    "tau": ("steps",),
}


@st.composite
def aimed(draw: Draw, formulas: list[str] = FORMULAS) -> Any:
    """A study with one of its ingredients replaced by one of the same kind that may be wrong."""
    study = copy.deepcopy(draw(studies()))
    fixed, grid = study["parameters"], study.get("grid", {})
    numbers = st.floats() | st.integers() | st.sampled_from([0, 1, -1, 1e-9, 1e6, 1e150, 1e-150])
    name = draw(st.sampled_from(["formula", "axis", "times", *SPECS]))
    if name == "formula":
        formula = draw(st.sampled_from(formulas))
        key = draw(st.sampled_from(["tau", "regularizer", "nonlinearity"]))
        fixed[key] = formula.replace("x", "t") if key == "tau" else formula
        if draw(st.booleans()):
            study["save"] = {"functionals": {"f": formula}}
    elif name in ("axis", "times"):
        spacing = draw(st.sampled_from(["linear", "log"]))
        start, stop, num = draw(numbers), draw(numbers), draw(st.integers(-1, 40))
        values = draw(
            st.lists(numbers, max_size=4)
            | st.just({"start": start, "stop": stop, "num": num, "spacing": spacing})
        )
        key = draw(st.sampled_from(["tau", "Q0", "rho", "omega", "beta", "start.normal.mean"]))
        if name == "times":
            study["times"] = values
        else:
            fixed.pop(key, None)
            study["grid"] = {**grid, key: values}
    else:
        known = [j for j in JUNK if isinstance(j, dict) and set(j) & set(SPECS[name])]
        spec = copy.deepcopy(draw(st.sampled_from(known)))
        if draw(st.booleans()):  # other numbers in the same place
            path = draw(st.sampled_from([p for p in _paths(spec) if p]))
            _holder(spec, path)[path[-1]] = draw(numbers)
        study["grid"] = {k: v for k, v in grid.items() if not k.startswith(name)}
        fixed[name] = spec
    return study


def _holder(study: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        study = study[key]
    return study


@st.composite
def changed(draw: Draw) -> Any:
    """A study with some values replaced, removed or added."""
    study = copy.deepcopy(draw(studies()))
    leaves = st.sampled_from(JUNK) | st.sampled_from(FORMULAS) | st.text(max_size=8) | st.floats()
    junk = leaves | st.integers() | st.recursive(
        leaves,
        lambda s: st.lists(s, max_size=4) | st.dictionaries(st.text(max_size=3), s, max_size=3),
        max_leaves=6,
    )  # fmt: skip
    for _ in range(draw(st.integers(1, 3))):
        paths = [path for path in _paths(study) if path]
        if not paths:
            return study
        path = draw(st.sampled_from(paths))
        holder, value = _holder(study, path), copy.deepcopy(draw(junk))
        what = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add", "rename"]))
        if what == "replace" or isinstance(holder, list):
            holder[path[-1]] = value
        elif what == "remove":
            del holder[path[-1]]
        elif what == "add":
            holder[draw(st.sampled_from(NAMES))] = value
        else:
            holder[draw(st.sampled_from(NAMES))] = holder.pop(path[-1])
    return study


def _dumped(study: Any, block: bool) -> str:
    if not block:
        return json.dumps(study, ensure_ascii=False)
    out, writer = io.StringIO(), YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.dump(study, out)
    return out.getvalue()


@st.composite
def texts(draw: Draw, study: st.SearchStrategy[Any]) -> bytes:
    """A study as the bytes of a file, in flow or in block style."""
    content = draw(study)
    try:
        return _dumped(content, draw(st.booleans())).encode("utf-8", "surrogatepass")
    except Exception:  # what a writer of YAML refuses is written as JSON
        return _dumped(content, False).encode("utf-8", "surrogatepass")


@st.composite
def mangled(draw: Draw) -> bytes:
    """The text of a study with pieces cut out, doubled or put in, or in another encoding."""
    text = draw(texts(studies())).decode("utf-8", "replace")
    for _ in range(draw(st.integers(1, 3))):
        first, last = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        what = draw(st.sampled_from(["cut", "insert", "insert", "double", "drop", "swap"]))
        if what == "cut":
            text = text[:last]
        elif what == "insert":
            text = text[:first] + draw(st.sampled_from(TEXTS) | st.text(max_size=5)) + text[first:]
        elif what == "double":
            text = text[:last] + text[first:]
        elif what == "drop":
            text = text[:first] + text[last:]
        else:
            text = text[first:] + text[:first]
    encoding = draw(st.sampled_from(["utf-8"] * 8 + ["utf-16", "utf-8-sig", "latin-1"]))
    return text.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")


@st.composite
def bombs(draw: Draw) -> bytes:
    """Small files that stand for much, and deep ones."""
    base = draw(texts(studies())).decode("utf-8", "replace")
    depth = draw(st.sampled_from([3, 10, 31, 33, 100, 1000, 20_000]))
    bomb = draw(
        st.builds(laughs, st.integers(2, 40), st.integers(2, 10), st.booleans())
        | st.builds(nested, st.just(depth), st.sampled_from(["list", "mapping", "block"]))
        | st.sampled_from(["a: &a [*a]\n", "a: &a {b: *a}\n", "parameters: &a [*a, *a]\n"])
        | st.builds(lambda n: "[" * n, st.just(depth))
        | st.builds(
            lambda n: "a:\n" + "".join(" " * i + "a:\n" for i in range(1, n)),
            st.just(min(depth, 1000)),
        )
    )  # fmt: skip
    return draw(st.sampled_from([bomb, bomb + base, base + "\n" + bomb])).encode("utf-8", "replace")


CASES = st.one_of(
    texts(changed()), texts(aimed()), mangled(), texts(aimed()), bombs(), st.binary(max_size=60)
)
"""Broken files; a few of them may still be studies."""
ALL = st.one_of(*[CASES] * 50, texts(aimed(SLOW)))
"""The same, and now and then one that takes long."""

"""Small faults put into hdica one at a time, to see whether its tests notice them.

``python -m tests.mutants --seed 1 --count 40 --results mutants.jsonl`` draws faults of one token or
so (a sign, one too many, two arguments in the other order, a factor left out, a condition turned
round) from as many rooms as there are, runs ``make test`` for the room of each until the first
failure, and puts the line back. What is in the results already is not run again.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from itertools import cycle
from pathlib import Path

from tests import rooms

ROOT = Path(__file__).parents[1]
LONGEST = 1800.0
"""Seconds after which a run counts as one that noticed: a fault may never end."""
OTHER = {
    ast.Lt: ">=",
    ast.GtE: "<",
    ast.Gt: "<=",
    ast.LtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
"""Comparisons and their contraries."""
SIGNS = {ast.Add: "-", ast.Sub: "+"}


@dataclass(frozen=True)
class Fault:
    """One expression of one file and what takes its place."""

    room: str
    file: str
    line: int
    kind: str
    before: str
    after: str
    start: int  # bytes
    end: int


def _numeric(node: ast.AST) -> bool:
    """Whether a plus may stand for a sum of numbers: texts and lists are joined by it, too."""
    joined = (ast.JoinedStr, ast.List, ast.Tuple, ast.Set, ast.Dict)
    texts = (isinstance(one, ast.Constant) and isinstance(one.value, str) for one in ast.walk(node))
    return not isinstance(node, joined) and not any(texts)


def _changes(node: ast.AST, text: dict[ast.AST, str]) -> Iterator[tuple[str, str]]:
    """Kinds of fault that an expression can have, and how it reads then."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in SIGNS and _numeric(left) and _numeric(right):
            yield "sign", f"({text[left]}) {SIGNS[type(op)]} ({text[right]})"
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "sign", f"({text[operand]})"
        case ast.BinOp(left, ast.Mult(), right) if _numeric(left) and _numeric(right):
            yield "factor", f"({text[left]})"
            yield "factor", f"({text[right]})"
        case ast.BinOp(left, ast.Div(), right) if _numeric(left) and _numeric(right):
            yield "factor", f"({text[left]})"
        case ast.Constant(int(value)) if not isinstance(value, bool):
            yield "one", str(value + 1)
        case ast.Call(func, [first, second, *_]) if text[func] != "isinstance":
            rest = [text[one] for one in node.args[2:]]
            rest += [
                f"{k.arg}={text[k.value]}" if k.arg else f"**{text[k.value]}" for k in node.keywords
            ]
            yield "order", f"{text[func]}({', '.join([text[second], text[first], *rest])})"
        case ast.Compare(left, [op], [right]) if type(op) in OTHER:
            yield "condition", f"({text[left]}) {OTHER[type(op)]} ({text[right]})"
        case ast.If(test) | ast.IfExp(test):
            yield "condition", f"not ({text[test]})"


@cache
def faults(room: str) -> list[Fault]:
    """Every fault that the functions of a room can have."""
    place = rooms.PACKAGE / room
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [fault for path in files for fault in _of_file(room, path)]


def _of_file(room: str, path: Path) -> Iterator[Fault]:
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.expr) -> slice:
        first = starts[node.lineno - 1] + node.col_offset
        return slice(first, starts[node.end_lineno - 1] + node.end_col_offset)

    functions = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)]
    inside = {node: None for one in functions for part in one.body for node in ast.walk(part)}
    text = {node: source[span(node)].decode() for node in inside if isinstance(node, ast.expr)}
    for node in inside:
        where = node.test if isinstance(node, ast.If | ast.IfExp) else node
        for kind, after in _changes(node, text):
            at, file = span(where), str(path.relative_to(ROOT))
            yield Fault(room, file, where.lineno, kind, text[where], after, at.start, at.stop)


def drawn(seed: int, count: int) -> list[Fault]:
    """Faults in as many rooms as possible, of kinds that are equally frequent."""
    dice = random.Random(seed)
    left = {room: list(faults(room)) for room in rooms.names()}
    places = [room for room in left if left[room]]
    dice.shuffle(places)
    found: list[Fault] = []
    for room in cycle(places):
        if len(found) == count or not any(left.values()):
            break
        kinds = sorted({one.kind for one in left[room]})
        if kinds:
            kind = dice.choice(kinds)
            found.append(dice.choice([one for one in left[room] if one.kind == kind]))
            left[room].remove(found[-1])
    return found


@contextmanager
def put(fault: Fault) -> Iterator[None]:
    """Put a fault into its file as long as the body runs."""
    path = ROOT / fault.file
    source = path.read_bytes()
    after = f"({fault.after})".encode()
    path.write_bytes(source[: fault.start] + after + source[fault.end :])
    try:
        yield
    finally:
        path.write_bytes(source)


def tried(fault: Fault, deep: bool) -> dict[str, object]:
    """Which test notices a fault first, if any does, and after how many seconds."""
    tier = "test-deep" if deep else "test"
    command = ["make", tier, f"ROOM={fault.room}", "PYTEST=-x -q --no-header -p no:cacheprovider"]
    began = time.monotonic()
    with put(fault):
        try:
            run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST)
            said, noticed = run.stdout + run.stderr, run.returncode != 0
        except subprocess.TimeoutExpired:
            said, noticed = "", True
    by = re.findall(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    last = by[0] if by else (said.strip().splitlines() or ["no end"])[-1] if noticed else ""
    return {
        "noticed": noticed,
        "by": last,
        "seconds": round(time.monotonic() - began),
        "tier": tier,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--deep", action="store_true", help="all tests, for those not noticed")
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    options = parser.parse_args()
    chosen = drawn(options.seed, options.count)
    if options.list:
        print("\n".join(f"{f.file}:{f.line} {f.kind}: {f.before}  ->  {f.after}" for f in chosen))
        return
    status = subprocess.run(["git", "status", "--short", "hdica"], cwd=ROOT, capture_output=True)
    if status.stdout:
        raise SystemExit("hdica/ has changes that are not committed: a fault would be lost in them")
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    before = [json.loads(line) for line in lines]
    known = {(one["file"], one["start"], one["after"], one["tier"]): one for one in before}
    tier = "test-deep" if options.deep else "test"
    for fault in chosen:
        place = (fault.file, fault.start, fault.after)
        slept = known.get((*place, "test"))
        if (*place, tier) in known or (options.deep and (slept is None or slept["noticed"])):
            continue
        result = asdict(fault) | tried(fault, options.deep)
        with options.results.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(
            f"{fault.file}:{fault.line} {fault.kind}: {result['by'] or 'not noticed'}", flush=True
        )


if __name__ == "__main__":
    main()

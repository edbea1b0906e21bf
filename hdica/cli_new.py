"""``hdica new``: a first study, of flags or of a few questions."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdica.errors import HdicaError, printable

if TYPE_CHECKING:
    from hdica.sweep.study.sketch import Sizes

NAME = re.compile(r"[a-z][a-z0-9_]*")


def new(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Study file; default: <system>_<ask>.yaml."),
    ] = None,
    system: Annotated[str, typer.Option(help="The problem, as OnlineICA.")] = "",
    ask: Annotated[
        str, typer.Option(help="An analysis, as phase; default: what suits the system.")
    ] = "",
    n: Annotated[str, typer.Option("--n", metavar="N,N", help="Dimensions of the data.")] = "",
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of a simulation.")] = None,
    points: Annotated[
        int | None, typer.Option(min=2, help="Values of each swept parameter.")
    ] = None,
    until: Annotated[float | None, typer.Option(help="The last output time.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Write over a file.")] = False,
) -> None:
    """Write a study with a comment on each of its lines.

    On a terminal what is not given is asked for. Sizes that are not given are chosen so that it
    takes seconds.
    """
    from hdica.sweep.files.folder import check_file, write_file
    from hdica.sweep.study.sketch import questions, seconds_of, sketch
    from hdica.sweep.study.sketch_text import commented
    from hdica.sweep.study.study import study_from
    from hdica.systems.registry import snake, system_named, systems

    asking = sys.stdin.isatty() and sys.stderr.isatty()
    titles = {name: record.title for name, record in systems().items()}
    record = system_named(_chosen("--system", "System", system, titles, asking))
    known = questions(record)
    first = next(iter(known))
    asked = ask or (_chosen("--ask", "What is asked", "", known, True) if asking else first)
    target = _target(file, f"{snake(record.name)}_{asked}")
    if target.exists() and not replace:
        raise HdicaError(f"{target} is there already (--replace writes over it)")
    check_file(target)
    content = sketch(record, asked, target.stem, _sizes(n, seeds, points, until))
    write_file(target, commented(record, content, str(target)).encode())
    _told(target, seconds_of(study_from(content)))


def _told(target: Path, seconds: float) -> None:
    from hdica.sweep.run.asked import duration

    cost = f"about {duration(seconds)} on one core" if seconds >= 1 else "less than a second"
    typer.echo(printable(f"{target}: {cost}; hdica run {target} computes it"))


def _chosen(flag: str, what: str, given: str, allowed: Mapping[str, str], asking: bool) -> str:
    """What is given, or what is chosen from a numbered list on a terminal."""
    if given:
        return given
    names = list(allowed)
    if not asking:
        raise HdicaError(f"{flag} is missing (allowed: {', '.join(names)})")
    for place, (name, about) in enumerate(allowed.items(), 1):
        typer.echo(printable(f"  {place:>2}  {name}: {about}"), err=True)
    while True:
        answer = str(typer.prompt(f"{what}, a number or a name", default=names[0], err=True))
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]
        if answer in allowed:
            return answer
        typer.echo(printable(f"{answer} is none of these"), err=True)


def _sizes(n: str, seeds: int | None, points: int | None, until: float | None) -> Sizes:
    from hdica.sweep.study.sketch import Sizes

    if n and not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", n):
        raise HdicaError(f"--n {n!r} is not allowed (whole numbers, for example 100,400)")
    return Sizes(tuple(map(int, n.split(","))) if n else None, seeds, points, until)


def _target(file: Path | None, name: str) -> Path:
    """The file to write; its name is that of the study."""
    target = Path(f"{name}.yaml") if file is None else file
    if target.suffix != ".yaml" or not NAME.fullmatch(target.stem):
        raise HdicaError(
            f"FILE = {str(target)!r} is not allowed (lower case letters, digits and _, then .yaml)"
        )
    return target

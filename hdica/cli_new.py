"""``hdica new``: a first study, from the commented file ``first.yaml`` beside a system."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdica.errors import HdicaError, printable

if TYPE_CHECKING:
    from hdica.systems.system import System

TEMPLATE = "first.yaml"
"""A valid study named ``first``, in the folder of the module that defines the system."""
NAME = re.compile(r"[a-z][a-z0-9_]*")


def new(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Study file; default: online_ica.yaml for OnlineICA."),
    ] = None,
    system: Annotated[str, typer.Option(help="The problem, as OnlineICA.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Write over a file.")] = False,
) -> None:
    """Write a first study of a system, with a comment on each of its lines.

    It runs in seconds as it stands. On a terminal the system is asked for if it is not given.
    """
    from hdica.run.plan import duration, plan
    from hdica.store.paths import check_file, write_file
    from hdica.study.study import load_study
    from hdica.systems.registry import snake, system_named

    record = system_named(system or _chosen())
    target = _target(file, snake(record.name))
    template = _template(record)
    if target.exists() and not replace:
        raise HdicaError(f"{target} is there already (--replace writes over it)")
    check_file(target)
    study = load_study(template)
    if study.system != record.name:
        raise HdicaError(f"{template} is a study of {study.system}, not of {record.name}")
    planned = plan(study)
    text = template.read_text(encoding="utf-8")
    write_file(target, _renamed(text, target).encode())
    cost = f"{planned.points} points, about {duration(planned.wait())}"
    typer.echo(printable(f"{target}: {cost}; hdica run {shlex.quote(str(target))} computes them"))


def _chosen() -> str:
    """The name of a system, chosen from a numbered list on a terminal."""
    from hdica.systems.registry import systems

    names = list(systems())
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise HdicaError(f"--system is missing (allowed: {', '.join(names)})")
    for place, name in enumerate(names, 1):
        typer.echo(printable(f"  {place:>2}  {name}: {systems()[name].title}"), err=True)
    while True:
        answer = str(typer.prompt("System, a number or a name", default=names[0], err=True))
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]
        if answer in names:
            return answer
        typer.echo(printable(f"{answer} is none of these"), err=True)


def _target(file: Path | None, name: str) -> Path:
    """The file to write; its name is that of the study."""
    target = Path(f"{name}.yaml") if file is None else file
    if target.suffix != ".yaml" or not NAME.fullmatch(target.stem):
        raise HdicaError(
            f"FILE = {str(target)!r} is not allowed (lower case letters, digits and _, then .yaml)"
        )
    return target


def _template(record: System) -> Path:
    """The first study of a system."""
    path = Path(inspect.getfile(record.parameters)).with_name(TEMPLATE)
    if not path.is_file():
        raise HdicaError(
            f"{record.name} has no first study (it would be {path}): write one of your own, as "
            "config/README.md says"
        )
    return path


def _renamed(text: str, target: Path) -> str:
    """A first study under the name of another file, also in the commands of its comments."""
    name, command = target.stem, printable(shlex.quote(str(target)))
    text = re.sub(r"^study: first\b", f"study: {name}", text, flags=re.MULTILINE)
    text = text.replace("results/first", f"results/{name}")
    # Last, since a path may hold what is replaced above.
    return text.replace(TEMPLATE, command)

"""Files of the user: ``hdica new`` writes a study, ``data`` lists data, ``cluster`` shows a job."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdica.errors import HdicaError, printable
from hdica.inputs.place import (
    MANIFEST,
    NOT_LISTED,
    data_root,
    differences,
    digest_file,
    files_below,
    place,
    read_manifest,
    write_manifest,
)

if TYPE_CHECKING:
    from hdica.systems.system import System

TEMPLATE = "first.yaml"
"""A valid study named ``first``, in the folder of the module that defines the system."""
NAME = re.compile(r"[a-z][a-z0-9_]*")


def _say(text: str, err: bool = False) -> None:
    typer.echo(printable(text), err=err)


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
    from hdica.systems.system import snake, system_named

    record = system_named(system or _chosen())
    target = Path(f"{snake(record.name)}.yaml") if file is None else file
    if target.suffix != ".yaml" or not NAME.fullmatch(target.stem):
        raise HdicaError(
            f"FILE = {str(target)!r} is not allowed (lower case letters, digits and _, then .yaml)"
        )
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
    _say(f"{target}: {cost}; hdica run {shlex.quote(str(target))} computes them")


def _chosen() -> str:
    """The name of a system, chosen from a numbered list on a terminal."""
    from hdica.systems.system import systems

    names = list(systems())
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise HdicaError(f"--system is missing (allowed: {', '.join(names)})")
    for number, name in enumerate(names, 1):
        _say(f"  {number:>2}  {name}: {systems()[name].title}", err=True)
    while True:
        answer = str(typer.prompt("System, a number or a name", default=names[0], err=True))
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]
        if answer in names:
            return answer
        _say(f"{answer} is none of these", err=True)


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


data_app = typer.Typer(name="data", help="List data, write manifests of it and verify them.")

Folder = Annotated[
    str, typer.Argument(metavar="[PATH]", help="Below the folder of data; default: all of it.")
]


@data_app.callback()
def _data() -> None:
    """List data, write manifests of it and verify them."""


def _folder(path: str) -> Path:
    folder = place(path) if path else data_root()
    if not folder.is_dir():
        where = path or str(folder)
        raise HdicaError(f"PATH = {where!r} is not allowed (a folder of data)", ["path"])
    return folder


@data_app.command("list", epilog="Example: hdica data list images")
def list_files(path: Folder = "") -> None:
    """List files of data with their sizes and digests."""
    folder = _folder(path)
    inner = folder.relative_to(data_root())
    total = 0
    for name, file in files_below(folder).items():
        size = file.stat().st_size
        total += size
        _say(f"{digest_file(file)}  {size:>12}  {(inner / name).as_posix()}")
    _say(f"{total} bytes in {folder}")


@data_app.command(epilog="Example: hdica data write images/mine")
def write(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Folder below that of data.")],
) -> None:
    """List what lies in a folder now in its MANIFEST.sha256, as sha256sum does."""
    from hdica.store.paths import refuse_own

    folder = _folder(path)
    refuse_own(folder)
    made = write_manifest(folder)
    _say(f"{made}: {len(read_manifest(folder))} files")


@data_app.command(epilog="Example: hdica data verify")
def verify(path: Folder = "") -> None:
    """Compare files with the manifests that list them; status 3 if one is missing or differs.

    Files that no manifest lists are named.
    """
    from hdica.store.files import DamageError

    bad: list[str] = []
    folders = sorted(file.parent for file in _folder(path).rglob(MANIFEST))
    for folder in folders:
        wrong = differences(folder)
        for text in wrong:
            _say(f"{folder}: {text}")
        bad += [text for text in wrong if not text.endswith(NOT_LISTED)]
    if bad:
        files = "1 file is" if len(bad) == 1 else f"{len(bad)} files are"
        raise DamageError(f"{files} not what a manifest lists (the first: {bad[0]})")
    many = "1 manifest agrees" if len(folders) == 1 else f"{len(folders)} manifests agree"
    _say(f"{many} with the files listed")


cluster_app = typer.Typer(name="cluster", help="Show what a run submits to a cluster.")


@cluster_app.callback()
def _cluster() -> None:
    """Show what a run submits to a cluster."""


@cluster_app.command(epilog="Example: hdica cluster show --config config/config.yaml")
def show(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its section cluster says where Dask runs."),
    ] = None,
) -> None:
    """Show the settings, the script of a job and what a run would submit, also without Slurm."""
    from hdica.inputs.plain_yaml import written_yaml
    from hdica.run.settings import settings_of, submission
    from hdica.run.slurm import example_script

    settings = settings_of(config, {})
    script = example_script(settings) if settings.kind == "slurm" else ""
    section = {"cluster": settings.model_dump(mode="json", exclude_none=True)}
    text = "\n".join(filter(None, (written_yaml(section), script, submission(settings))))
    typer.echo(printable(text, " \n"))

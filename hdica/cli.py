"""The command line: one command a question, one sentence an error."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdica import __version__
from hdica.cli_files import cluster_app, data_app, new
from hdica.cli_samples import samples
from hdica.errors import HdicaError, Incomplete, extras, printable
from hdica.process.machine import LEAST, allowed

if TYPE_CHECKING:
    from hdica.run.compute import Published
    from hdica.study.study import Study

USAGE, INCOMPLETE, DAMAGED, INTERRUPTED = 2, 1, 3, 130
# The public names of these exceptions moved between releases of typer; what they are did not.
CommandError: type[Exception] = typer.BadParameter.__mro__[2]

_VALIDATOR = {
    "a valid integer.*": "a whole number is allowed",
    "a valid number.*": "a number is allowed",
    r"greater than or equal to (\S+)": r"at least \1 is allowed",
    r"less than or equal to (\S+)": r"at most \1 is allowed",
}

app = typer.Typer(
    name="hdica",
    help="High-dimensional dynamics of online learning: exact simulation, its limit, the distance.",
    epilog="Example: hdica run config/studies/tiny.yaml --workers 2",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app)
app.add_typer(cluster_app)
app.command(epilog="Example: hdica new first.yaml --system OnlineICA")(new)
app.command(epilog="Example: hdica samples --system OnlineICA --start random")(samples)


StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="Study file, *.yaml.")]
Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="Published store, *.zarr.")]
Out = Annotated[
    Path | None,
    typer.Option(metavar="RESULTS.zarr", help="Default: results/<study>.zarr."),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Put it in the place of another study's results.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes.")]


def _say(text: str) -> None:
    typer.echo(printable(text, " \n\t"))


def _note(*sentences: str) -> None:
    for text in filter(None, sentences):
        with suppress(OSError):  # nobody listens
            sys.stdout.flush()  # what stands above it, where both go into one file
            typer.echo(printable(text, " \n\t"), err=True)


def _notes(study: Study) -> None:
    _note(*(f"note: {note}" for note in study.notes()))


def _json(content: object) -> None:
    _say(json.dumps(content, indent=1))


def _load(path: Path, out: Path | None) -> tuple[Study, Path]:
    from hdica.store.paths import results_path
    from hdica.study.study import load_study

    study = load_study(path)
    return study, results_path(out or Path("results") / f"{study.study}.zarr")


def _version(wanted: bool) -> None:
    if wanted:
        _say(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        _note(context.get_help())
        raise typer.Exit(USAGE)


@app.command(epilog="Example: hdica validate config/studies/tiny.yaml")
def validate(study: StudyFile) -> None:
    """Check a study file without running anything."""
    from hdica.study.study import load_study, point_count, saved_in

    loaded = load_study(study)
    methods = "1 method" if len(loaded.methods) == 1 else f"{len(loaded.methods)} methods"
    keeps = saved_in(loaded)
    more = f", keeping {keeps}" if keeps else ""
    _say(f"{loaded.study} is valid: {methods}, at most {point_count(loaded)} points{more}")
    _notes(loaded)


@app.command(epilog="Example: hdica plan config/studies/tiny.yaml --workers 2")
def plan(study: StudyFile, out: Out = None, workers: Workers = 1, as_json: Json = False) -> None:
    """Show points, cost and size before anything runs."""
    from hdica.cli_tables import plan_table
    from hdica.run.plan import plan as make_plan

    loaded, target = _load(study, out)
    made = make_plan(loaded, target)
    if as_json:
        _json(made.as_dict(workers))
    else:
        plan_table(made, workers)


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    short = all(re.fullmatch("[0-9]{1,9}", part) for part in (index, count))
    if not (short and int(index) < int(count)):
        raise HdicaError(f"--shard {text!r} is not allowed (i/m with 0 <= i < m, for example 0/4)")
    return int(index), int(count)


@app.command(
    epilog="Example: hdica run config/studies/tiny.yaml --workers 2 --out results/tiny.zarr"
)
def run(
    study: StudyFile,
    out: Out = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: 1.")] = None,
    shard: Annotated[
        str, typer.Option(metavar="I/M", help="Compute part I of M only, and do not publish.")
    ] = "0/1",
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its section cluster says where Dask runs."),
    ] = None,
    address: Annotated[str, typer.Option(help="Address of a running Dask scheduler.")] = "",
    scheduler_file: Annotated[str, typer.Option(help="File that a Dask scheduler wrote.")] = "",
    tls: Annotated[
        str, typer.Option(metavar="DIR", help="Folder with ca.pem, cert.pem and key.pem.")
    ] = "",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Without certificates, everywhere.")
    ] = False,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Restart a local worker beyond it, as 2GiB.")
    ] = "",
    budget: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Processor time any point may take; default: 300."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Compute failed points again.")
    ] = False,
    replace: Replace = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Compute what is pending and publish it.

    It may be killed at any moment: the next call goes on.
    """
    from hdica.run.compute import compute
    from hdica.run.settings import settings_of

    part = _shard(shard)
    loaded, target = _load(study, out)
    _notes(loaded)
    options = {
        "address": address, "scheduler_file": scheduler_file, "tls": tls, "workers": workers,
        "insecure": insecure, "memory": memory, "budget": budget,
    }  # fmt: skip
    done = compute(
        loaded,
        target,
        settings_of(config, options),
        shard=part,
        progress=False if quiet else None,
        retry_failed=retry_failed,
        replace=replace,
        tell=_note,
        done=(lambda store: None) if quiet else _published,
    )
    missing = done.missing(str(target), "--retry-failed")
    if missing:
        raise Incomplete(missing)


def _published(store: Published) -> None:
    """Say what is published."""
    _note(store.sentence, store.diverged, store.note)


@app.command(epilog="Example: hdica publish config/studies/tiny.yaml (after runs with --shard)")
def publish(study: StudyFile, out: Out = None, replace: Replace = False) -> None:
    """Publish what is computed, computing nothing."""
    from hdica.run.compute import mending, published

    loaded, target = _load(study, out)
    mending(target, lambda: _published(published(loaded, target, replace)), _note)


@app.command(epilog="Example: hdica status results/tiny.zarr")
def status(results: Results, as_json: Json = False) -> None:
    """Show what is there, also while a run goes on."""
    from hdica.cli_tables import status_table
    from hdica.store.results import status as status_of

    counts = status_of(results)
    if as_json:
        _json(counts.as_dict())
    else:
        status_table(counts)
        _note(counts.note)


@app.command(epilog="Example: hdica verify results/tiny.zarr")
def verify(results: Results, as_json: Json = False) -> None:
    """Compare every file with its digest.

    Exit status 0: whole, 1: incomplete, 3: damaged.
    """
    from hdica.store.verify import verify as check

    verdict = check(results)
    if as_json:
        _json(verdict.as_dict())
    else:
        _note(*verdict.damaged, *verdict.incomplete, *verdict.notes)
        _say(f"{results} is {verdict.word}: {verdict.points} points, {verdict.files} files checked")
    raise typer.Exit(verdict.code)


@app.command(epilog="Example: hdica repair results/tiny.zarr")
def repair(results: Results) -> None:
    """Make damaged points pending; the next run restores them."""
    from hdica.store.verify import repair as mend

    done = mend(results)
    _note(*done)
    many = f"{len(done)} repair{'' if len(done) == 1 else 's'}"
    _say(f"{many}; hdica run restores the points" if done else "nothing is damaged")


@app.command(epilog="Example: hdica query results/tiny.zarr --sel tau=0.05 --sel n=400 --to csv")
def query(
    results: Results,
    sel: Annotated[
        list[str] | None,
        typer.Option(metavar="DIM=VALUE", help="Also DIM=V1,V2 and DIM=LOW:HIGH."),
    ] = None,
    method: Annotated[str | None, typer.Option(help="Default: the first that fits.")] = None,
    var: Annotated[list[str] | None, typer.Option(help="Default: the outputs.")] = None,
    mean: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM",
            help="Average over DIM, with the count; over seeds, as a table does by itself, with a "
            "standard error, too.",
        ),
    ] = None,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Take the closest coordinate.")
    ] = False,
    to: Annotated[
        str, typer.Option(metavar="csv|json|netcdf|parquet|-", help="- is a table.")
    ] = "-",
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
) -> None:
    """Print or write selected results.

    A table averages over seeds; all else holds every seed. --sel seed=0: shows all.
    """
    from hdica.store.query import answer, check_export, export, parse_selection, table

    check_export(to, out)
    selection = parse_selection(sel or [])
    reply = answer(results, selection, method, var or (), mean or (), nearest, to == "-")
    if to == "-" and out is None and sys.stdout.isatty():
        from hdica.cli_tables import answer_table

        answer_table(table(reply.data, reply.order), reply.title)
    else:
        export(reply.data, to, out, reply.order)
    _note(*reply.notes)


@app.command(epilog="Example: hdica cite results/tiny.zarr >> references.bib")
def cite(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="Published store, *.zarr, or a study, *.yaml.")
    ],
) -> None:
    """Print BibTeX of the papers and methods behind results."""
    from hdica.store.provenance import cite as entries

    _say(entries(results).rstrip("\n"))


@app.command(epilog="Example: hdica report config/studies/tiny.yaml")
def report(
    source: Annotated[
        Path,
        typer.Argument(metavar="STUDY|RESULTS", help="Study file, *.yaml, or its store, *.zarr."),
    ],
    results: Annotated[
        Path | None,
        typer.Option(metavar="RESULTS.zarr", help="Store of STUDY; default: results/<study>.zarr."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Default: RESULTS without .zarr.")
    ] = None,
    one_file: Annotated[
        bool,
        typer.Option("--one-file", help="Also as report-alone.html, which needs no other file."),
    ] = False,
    animate: Annotated[
        bool,
        typer.Option("--animate", help="Densities over time as GIF, and as MP4 by ffmpeg, too."),
    ] = False,
) -> None:
    """Write page, figures and data, and the gallery of all reports.

    A study file is shown as it is now, with what is computed of it; nothing is computed here.
    """
    from hdica.report import report_of
    from hdica.report.place import ALONE, PAGE

    written = report_of(source, results, out, one_file, animate)
    if animate:
        from hdica.report.drawn import film_notes

        _note(*film_notes(written))
    for path in written:
        if path.name in (PAGE, ALONE):
            _say(f"page: {path}")
    _say(f"reports: {written[-1]}")


@app.command(epilog="Example: hdica explore results/tiny.zarr")
def explore(
    results: Results,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="On 127.0.0.1; 0 for a free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
) -> None:
    """Look around in results in a browser, also while a run goes on.

    Prints an address with a token and serves it on this machine alone, until Ctrl-C ends it.
    """
    from hdica.explore.server import explore as serve

    serve(results, port, not no_browser, _say)


def call(arguments: list[str], begin: Callable[[], None] = lambda: None) -> int:
    """Run the command line and return its exit status; errors are one sentence on stderr.

    0 fine, 1 incomplete, 2 wrong usage or input, 3 damaged; 128 and the signal's number if a signal
    ended it. ``begin`` is called right before signals are heeded.
    """
    if (limit := allowed()) is not None and limit < LEAST:
        needed = f"{limit / 1e9:.2g} GB of memory are too little ({LEAST / 1e9:.2g} are needed)"
        return _sentence(f"ulimit -v: {needed}", USAGE)
    try:
        from hdica.run.console import heeding
        from hdica.store.paths import acting, command_line
    except HdicaError as exc:  # python -O
        return _sentence(str(exc), USAGE)
    begin()
    with heeding() as stops, acting(command_line(arguments)):
        code = _call(arguments)
    if stops:
        # Whichever release of typer has swallowed it.
        return _sentence(str(stops[0]), stops[0].status)
    if code == INTERRUPTED:
        return _sentence("interrupted; what was committed is kept", code)
    return code


def _call(arguments: list[str]) -> int:
    try:
        with extras():
            code = app(arguments, prog_name="hdica", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader has gone, as with | head: nothing is left to say, nor to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Incomplete as exc:
        return _sentence(str(exc), INCOMPLETE)
    except HdicaError as exc:
        from hdica.store.files import DamageError

        return _sentence(str(exc), DAMAGED if isinstance(exc, DamageError) else USAGE)
    except CommandError as exc:
        return _sentence(_plain(getattr(exc, "format_message", exc.__str__)()), USAGE)
    except MemoryError:
        limit = allowed()
        why = "" if limit is None else f", of which ulimit -v allows {limit / 1e9:.2g} GB"
        return _sentence(f"out of memory{why} (select less, or run with fewer workers)", USAGE)
    except OSError as exc:
        where = f" ({exc.filename})" if exc.filename else ""
        return _sentence(f"{exc.strerror or exc}{where}", USAGE)


def _plain(text: str) -> str:
    """What typer says of an option, without the words of its validator."""
    for pattern, words in _VALIDATOR.items():
        text = re.sub(f"[Ii]nput should be {pattern}", words, text)
    return text


def _sentence(text: str, code: int) -> int:
    _note(f"hdica: {' '.join(text.split())}")
    return code


def _open_streams() -> None:
    """Open the null device for streams that this process lacks, whose numbers files would take."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r"))  # noqa: SIM115


def main(begin: Callable[[], None] = lambda: None) -> None:
    """Run the command line of this process, and end it; ``begin`` is as for :func:`call`."""
    _open_streams()
    # One line, without a place in the sources.
    warnings.formatwarning = lambda message, *_, **__: f"hdica: {message}\n"
    sys.exit(call(sys.argv[1:], begin))


if __name__ == "__main__":
    main()

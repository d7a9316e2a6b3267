"""What was measured beside what is published: the command `reproduce`."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, get_args

import typer

from benchmark import parsers
from benchmark.commands.command import command, records_of, say_json
from benchmark.option import OnePath, Option, Paths, Switch, Words
from zoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from leaderboards.literature import Published

ComparisonFormat = Literal["table", "csv", "json"]


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest:
    """Which published numbers to compare with."""

    output: OnePath = Option("results", "Folder of records and tables.", parsers.path, short="-o")
    backbones: Words = Option(
        (), "Names or patterns ('dino-*').", parsers.names, short="-b", several=True, usual="all"
    )
    tasks: Words = Option((), "Tasks.", parsers.names, short="-t", several=True, usual="all")
    source: Words = Option((), "Sources of published numbers.", parsers.names, several=True, usual="all")
    format: Option[ComparisonFormat, ComparisonFormat] = Option(
        "table", "A table, or everything as CSV or JSON.", parsers.choice, choices=get_args(ComparisonFormat)
    )
    all: Switch = Option(False, "Show numbers that were not run or are not comparable, too.", parsers.switch)
    published: Paths = Option(
        (),
        "CSV files of further published numbers, in the columns of leaderboards/published.",
        parsers.paths,
        several=True,
    )


@command("reproduce", ReproduceRequest)
def reproduce_command(request: ReproduceRequest) -> int:
    """Compare what was measured with published numbers.

    A published number agrees where it meets the 95 % interval of the measured one. Exit code 1 if one is off.

    Example: `python -m benchmark reproduce -b 'dino-*' --published my-paper.csv`
    """
    from leaderboards.disputes import disputes
    from leaderboards.literature import all_published, read_published
    from leaderboards.pages.csv import inert
    from leaderboards.reproduce import counts, reproduce
    from zoo.registry import all_specs

    further = [number for path in request.published for number in read_published(path, own=True)]
    chosen = _chosen((*all_published(), *further), request)
    known = {spec.name for spec in all_specs()}
    frame = reproduce(records_of(request.output, empty=True), chosen, known)
    verdicts, disputed = counts(frame), disputes(chosen)
    if request.format == "csv":
        typer.echo(inert(frame).to_csv(index=False, lineterminator="\n"), nl=False)
    elif request.format == "json":
        rows = json.loads(frame.to_json(orient="records"))
        content = {"counts": verdicts, "numbers": rows, "disagreements": disputed}
        say_json(content)
    else:
        _show(frame, request.all)
        for sentence in disputed:
            typer.echo(f"{sentence}\n")
    summary = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items() if number)
    typer.echo(f"{len(frame)} published numbers: {summary}", err=request.format != "table")
    return 1 if verdicts["off"] else 0


def _chosen(published: "Sequence[Published]", request: ReproduceRequest) -> "tuple[Published, ...]":
    """The published numbers that were asked for, in order.

    Raises:
        InputError: A name or pattern fits none of them, or nothing is left.
    """
    backbones, tasks, sources = request.backbones, request.tasks, request.source
    _require_known("backbone", backbones, {number.backbone for number in published})
    _require_known("task", tasks, {number.task for number in published})
    _require_known("source", sources, {number.source for number in published})
    chosen = tuple(
        number
        for number in published
        if (not backbones or any(fnmatchcase(number.backbone, pattern) for pattern in backbones))
        and (not tasks or number.task in tasks)
        and (not sources or number.source in sources)
    )
    if not chosen:
        raise InputError("no published number is of all that was named together; leave some of it out")
    return chosen


def _require_known(what: str, given: Iterable[str], known: set[str]) -> None:
    """Raise InputError for a name, or a backbone's pattern, that no published number has."""
    for name in given:
        if name in known or (what == "backbone" and any(fnmatchcase(each, name) for each in known)):
            continue
        close = get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are some of {', '.join(sorted(known))}"
        raise InputError(f"there is no published number of the {what} {name!r}; {hint}")


def _show(frame: "pd.DataFrame", everything: bool) -> None:
    """Print the table of what was run, or of everything."""
    from leaderboards.pages.markdown import table
    from leaderboards.reproduce import NOT_MEASURED
    from leaderboards.sections.published import published_table

    rows = frame if everything else frame[~frame["verdict"].isin(NOT_MEASURED)]
    if len(rows):
        typer.echo(table(published_table(rows), left=3) + "\n")
    else:
        typer.echo("None of them was run. --all shows what they are.")

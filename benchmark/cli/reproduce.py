"""The command `reproduce`: measured beside published. Heavy libraries are imported when it runs."""

import json
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from benchmark.cli.options import command_of
from benchmark.request.pages import ReproduceRequest
from zoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from leaderboards.literature import Published


@command_of(ReproduceRequest)
def reproduce_command(request: ReproduceRequest) -> None:
    """Compare what was measured with published numbers.

    A published number agrees where it meets the 95 % interval of the measured one. Exit code 1 if one is off.

    Example: `python -m benchmark reproduce -b 'dino-*' --published my-paper.csv`
    """
    from leaderboards.disputes import disputes
    from leaderboards.literature import all_published, read_published
    from leaderboards.pages.csv import inert
    from leaderboards.reproduce import counts, reproduce
    from zoo.registry import all_specs

    own = [one for path in request.published for one in read_published(path, own=True)]
    chosen = choose((*all_published(), *own), request.backbones, request.tasks, request.source)
    known = {spec.name for spec in all_specs()}
    frame = reproduce(_records(request.output / "records"), chosen, known)
    found, disputed = counts(frame), disputes(chosen)
    summary = f"{len(frame)} published numbers: " + ", ".join(f"{n} {name}" for name, n in found.items() if n)
    if request.format == "csv":
        typer.echo(inert(frame).to_csv(index=False, lineterminator="\n"), nl=False)
    elif request.format == "json":
        rows = json.loads(frame.to_json(orient="records"))
        typer.echo(
            json.dumps(
                {"counts": found, "numbers": rows, "disagreements": disputed}, indent=2, ensure_ascii=False
            )
        )
    else:
        _show(frame, request.all)
        for sentence in disputed:
            typer.echo(f"{sentence}\n")
    typer.echo(summary, err=request.format != "table")
    raise typer.Exit(1 if found["off"] else 0)


def choose(
    published: "Sequence[Published]", backbones: Sequence[str], tasks: Sequence[str], sources: Sequence[str]
) -> "tuple[Published, ...]":
    """The published numbers that were asked for, in order; all of what is not narrowed down.

    Args:
        published: All of them.
        backbones: Names and patterns of backbones.
        tasks: Names of tasks.
        sources: Keys of sources.

    Raises:
        InputError: A name or pattern fits none of them, or nothing is left.
    """
    for what, given, known in (
        ("backbone", backbones, {one.backbone for one in published}),
        ("task", tasks, {one.task for one in published}),
        ("source", sources, {one.source for one in published}),
    ):
        _require_known(what, given, known)
    chosen = tuple(
        one
        for one in published
        if (not backbones or any(fnmatchcase(one.backbone, pattern) for pattern in backbones))
        and (not tasks or one.task in tasks)
        and (not sources or one.source in sources)
    )
    if not chosen:
        raise InputError("no published number is of all that was named together; leave some of it out")
    return chosen


def _require_known(what: str, given: Iterable[str], known: set[str]) -> None:
    """Raise InputError for a name, or a backbone's pattern, that no published number has."""
    for name in given:
        if not any(fnmatchcase(one, name) if what == "backbone" else one == name for one in known):
            close = get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are some of {', '.join(sorted(known))}"
            raise InputError(f"there is no published number of the {what} {name!r}; {hint}")


def _records(folder: Path) -> "pd.DataFrame":
    """All records below a folder; an empty frame where there are none.

    Raises:
        InputError: There is no such output.
    """
    from leaderboards.records.record import read_records, to_frame

    if not folder.parent.is_dir():
        raise InputError(
            f"expected a folder of records and tables at {folder.parent}, which does not exist; "
            "`python -m benchmark run` writes one, --output names it"
        )
    there = any(not path.name.startswith(".") for path in folder.rglob("*.parquet"))
    return read_records([folder]) if there else to_frame([])


def _show(frame: "pd.DataFrame", everything: bool) -> None:
    """Print the table of what was run, or of everything."""
    from leaderboards.pages.markdown import table
    from leaderboards.pages.published import published_table
    from leaderboards.reproduce import NOT_MEASURED

    shown = frame if everything else frame[~frame["verdict"].isin(NOT_MEASURED)]
    if len(shown):
        typer.echo(table(published_table(shown), left=3) + "\n")
    else:
        typer.echo("None of them was run. --all shows what they are.")

"""The command `leaderboard`: the pages again. Heavy libraries are imported when it runs."""

import typer

from benchmark.cli.options import command_of
from benchmark.request.pages import LeaderboardRequest
from zoo.errors import InputError

CURRENT = "The committed pages are current."


@command_of(LeaderboardRequest)
def leaderboard_command(request: LeaderboardRequest) -> None:
    """Write the pages again from the records, or check that the committed ones are current.

    With `--check --baseline DIR`, a guard of your model: exit code 1 and a table of what moved.

    Example: `python -m benchmark leaderboard --check --baseline baseline -b my-net --tolerance 1`
    """
    of_baseline = (request.backbones, request.tolerance is not None)
    if request.baseline is None and any(of_baseline):
        raise InputError("--backbones and --tolerance say what may move; give --check --baseline DIR, too")
    if request.baseline is not None and not request.check:
        raise InputError("--baseline is what is compared with; give --check, too")
    if request.baseline is not None:
        _guard(request)
    elif request.check:
        _check(request)
    else:
        _write(request)


def _write(request: LeaderboardRequest) -> None:
    """Write the pages."""
    from benchmark.plan.facts import with_seen
    from leaderboards.literature import read_published
    from leaderboards.pages.build import write_pages
    from leaderboards.records.record import read_records

    others = [one for path in request.published for one in read_published(path, own=True)]
    records = with_seen(read_records([request.output / "records"]))
    endings = [part.strip() for part in request.format.split(",")]
    folder, kept = request.tables or request.output / "tables", request.output
    for path in write_pages(records, folder, kept / "items", endings, kept / "arrays", others):
        typer.echo(path)


def _check(request: LeaderboardRequest) -> None:
    """Compare the records with committed pages."""
    from leaderboards.check import check_pages
    from leaderboards.pages.build import tables_folder
    from leaderboards.records.record import read_records

    differences = check_pages(read_records([request.output / "records"]), request.tables or tables_folder())
    for line in differences or [CURRENT]:
        typer.echo(line)
    raise typer.Exit(1 if differences else 0)


def _guard(request: LeaderboardRequest) -> None:
    """Compare the records with a baseline."""
    from leaderboards.check import TOLERANCE, Tolerance
    from leaderboards.guard import guard, moved_table, read_baseline, tidy_records
    from leaderboards.pages.markdown import table
    from leaderboards.records.record import read_records

    assert request.baseline is not None
    limit = TOLERANCE.score if request.tolerance is None else request.tolerance
    if limit < 0:
        raise InputError(f"--tolerance takes a number of at least 0; found {limit:g}")
    now = tidy_records(read_records([request.output / "records"]))
    found = guard(read_baseline(request.baseline), now, request.backbones, Tolerance(score=limit))
    if not found.moved:
        typer.echo(f"None of {found.count} numbers moved by more than {limit:g} points.")
        return
    rows = moved_table(found)
    typer.echo(table(rows, left=3) + "\n")
    further = f", of which {len(rows)} are shown" if len(rows) < len(found.moved) else ""
    typer.echo(f"{len(found.moved)} of {found.count} numbers moved{further}.")
    raise typer.Exit(1)

"""The command `run`. Heavy libraries are imported after its first line."""

import typer

from benchmark.cli.interrupt import ended_by_signals
from benchmark.cli.options import command_of
from benchmark.engines.progress import Terminal
from benchmark.request import Request
from leaderboards.records.version import VERSION


@command_of(Request)
def run_command(request: Request) -> None:
    """Run every layer of backbones through tasks and write leaderboards.

    Without options: the mini suite, offline, in two to four minutes.
    """
    typer.echo(first_line(request))
    report = Terminal()
    with ended_by_signals(report, "interrupted; what is finished is kept, run again to go on"):
        from benchmark.api import carry_out
        from benchmark.cli.summary import show

        summary = carry_out(request, report)
    raise typer.Exit(show(summary, report))


def first_line(request: Request) -> str:
    """What was asked for, before anything is looked up."""
    given = str(request.data or "") or ", ".join(request.images)
    suite = request.suite or ("standard" if given else "mini")
    where = f" on {given}" if given else ""
    backbones = ", ".join(request.backbones) or "the suite's backbones"
    tasks = ", ".join(request.tasks) or "all tasks"
    return f"layerboard {VERSION}: suite {suite}{where}; {backbones}; {tasks}"

"""The command `run`. Heavy libraries are imported after its first line."""

import json

import typer

from benchmark.cli.interrupt import ended_by_signals
from benchmark.cli.options import command_of
from benchmark.engines.progress import Terminal
from benchmark.request import Request, RunCommand
from leaderboards.records.version import VERSION


@command_of(RunCommand)
def run_command(given: RunCommand) -> None:
    """Run every layer of backbones through tasks and write leaderboards.

    Without options: the mini suite, offline, in two to four minutes.
    """
    request, report = given.request, Terminal()
    if given.plan:
        _plan(request, report, for_machines=given.json)
        return
    typer.echo(first_line(request))
    with ended_by_signals(report, "interrupted; what is finished is kept, run again to go on"):
        from benchmark.api import carry_out
        from benchmark.cli.summary import show

        summary = carry_out(request, report)
    raise typer.Exit(show(summary, report))


def _plan(request: Request, report: Terminal, *, for_machines: bool) -> None:
    """Say what a run would take."""
    if not for_machines:
        typer.echo(first_line(request))
    with ended_by_signals(report, "interrupted; nothing was kept"):
        from benchmark.exchange.planning import forecast_data, forecast_lines, forecast_table
        from benchmark.jobs.forecast import forecast

        found = forecast(request, report)
    if for_machines:
        typer.echo(json.dumps(forecast_data(found), indent=2, ensure_ascii=False))
        return
    from tabulate import tabulate

    table = tabulate(forecast_table(found).to_dict("list"), headers="keys", disable_numparse=True)
    typer.echo("\n".join([table, "", *forecast_lines(found)]))


def first_line(request: Request) -> str:
    """What was asked for, before anything is looked up."""
    given = str(request.data or "") or ", ".join(request.images)
    suite = request.suite or ("standard" if given else "mini")
    where = f" on {given}" if given else ""
    backbones = ", ".join(request.backbones) or "the suite's backbones"
    tasks = ", ".join(request.tasks) or "all tasks"
    return f"layerboard {VERSION}: suite {suite}{where}; {backbones}; {tasks}"

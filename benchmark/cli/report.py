"""The command `report`: what was measured, to look at. Heavy libraries are imported when it runs."""

import typer

from benchmark.cli.options import command_of
from benchmark.request.pages import ReportRequest


@command_of(ReportRequest)
def report_command(request: ReportRequest) -> None:
    """Write one HTML page for each suite of an output folder: charts, filters, tables, in one offline file.

    It needs no backbone and no data, and no network when it is read. `--figures` writes the charts as files
    for papers, `--site` a folder for any static host.

    Example: `python -m benchmark report --figures pdf`
    """
    from benchmark.exchange.reporting import written

    for path in written(request):
        typer.echo(path)

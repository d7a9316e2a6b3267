"""The command `merge`: several output folders as one. Heavy libraries are imported when it runs."""

import typer

from benchmark.cli.options import command_of
from benchmark.request.exchange import MergeRequest


@command_of(MergeRequest)
def merge_command(request: MergeRequest) -> None:
    """Put what several runs have written, on several machines perhaps, into one folder with one set of pages.

    The same result twice is fine. Two different results of one backbone, task, dataset and protocol are
    refused, both files named, before anything is written; so are files that are not as they were written.

    Example: `python -m benchmark merge results-a results-b --output results`
    """
    from benchmark.exchange.merging import merged

    for line in merged(request):
        typer.echo(line)

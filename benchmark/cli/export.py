"""The command `export`: files for papers and model cards. Heavy libraries are imported when it runs."""

import typer

from benchmark.cli.options import command_of
from benchmark.request.exchange import ExportRequest


@command_of(ExportRequest)
def export_command(request: ExportRequest) -> None:
    """Write what was measured for others: a LaTeX table, CSV files, or results for model cards of the Hub.

    - `latex`: the best layer of each backbone, with booktabs, intervals, the best in bold, ties marked.
    - `csv`: the numbers of every layer, as the leaderboard has them.
    - `hub`: BACKBONE/model-index.yaml for each trained backbone, for the front matter of its model card
      (`huggingface_hub.metadata_update`); with `--benchmarks` also BACKBONE/.eval_results/*.yaml.

    Example: `python -m benchmark export latex -o results --to paper/tables`
    """
    from benchmark.exchange.export import exported

    for path in exported(request):
        typer.echo(path)

"""The command `compare`: two backbones, paired. Heavy libraries are imported when it runs."""

import json

import typer

from benchmark.cli.options import command_of
from benchmark.request.exchange import CompareRequest


@command_of(CompareRequest)
def compare_command(request: CompareRequest) -> None:
    """Compare two backbones on every task that both ran on the same images.

    Differences are paired, item by item, with 95 % intervals and p-values that are corrected for the number
    of comparisons by Holm's rule. Needs no backbone and no data: what a run has written is enough.

    Example: `python -m benchmark compare dino-b16 clip-b16 --tasks knn spair`
    """
    from benchmark.exchange.comparison import matched
    from leaderboards.pages.markdown import table
    from leaderboards.versus import conclusion, match_frame, match_table

    found = matched(request)
    if request.json:
        rows = json.loads(match_frame(found).to_json(orient="records", double_precision=15))
        said = {
            "first": found.names[0],
            "second": found.names[1],
            "layers": found.which,
            "comparisons": rows,
            "left_out": found.left_out,
            "conclusion": conclusion(found),
        }
        typer.echo(json.dumps(said, indent=2, ensure_ascii=False))
        return
    typer.echo(table(match_table(found)) + "\n")
    for sentence in found.left_out:
        typer.echo(f"left out: {sentence}")
    typer.echo(conclusion(found))

"""The command `recommend`: what to use. Heavy libraries are imported when it runs."""

import json
from typing import TYPE_CHECKING

import typer

from benchmark.cli.options import command_of
from benchmark.request.recommending import RecommendRequest

if TYPE_CHECKING:
    from leaderboards.recommendation import Recommendation


@command_of(RecommendRequest)
def recommend_command(request: RecommendRequest) -> None:
    """Say which backbones and layers the data cannot tell from the best, the cheapest first.

    With several tasks a backbone must do for every one of them. Scores come from a run, times from its task
    `cost`. Each recommendation has its reason, and lines of Python that load the backbone, cut after the
    layer.

    Example: `python -m benchmark recommend --task knn spair --max-ms 10 --licence commercial`
    """
    from benchmark.exchange.recommending import recommended
    from leaderboards.pages.markdown import table
    from leaderboards.recommendation import pareto_table, pick_table

    found = recommended(request)
    if request.json:
        typer.echo(json.dumps(_for_machines(found), indent=2, ensure_ascii=False))
        return
    typer.echo(table(pick_table(found)) + "\n")
    for rank, pick in enumerate(found.picks, start=1):
        typer.echo(f"{rank}. {pick.backbone}: {found.reason(pick)}.")
    for column, front in found.fronts.items():
        if len(front):
            typer.echo(f"\nPareto front, score against time, {column.heading}:\n")
            typer.echo(table(pareto_table(found, column)))
    typer.echo(f"\nThe first of them in Python:\n\n{found.code[0]}\n")
    for note in found.notes:
        typer.echo(note)


def _for_machines(found: "Recommendation") -> dict[str, object]:
    """A recommendation as JSON has it."""
    frames = {"recommended": found.frame, "pareto": found.pareto}
    said: dict[str, object] = {
        name: json.loads(frame.to_json(orient="records", double_precision=15))
        for name, frame in frames.items()
    }
    return {**said, "device": found.device, "notes": list(found.notes), "python": list(found.code)}

"""The command `show`: what a run found, again. Heavy libraries are imported when it runs."""

import json
from typing import TYPE_CHECKING

import typer

from benchmark.cli.options import command_of
from benchmark.request.pages import ShowRequest

if TYPE_CHECKING:
    from benchmark.exchange.answering import Answered


@command_of(ShowRequest)
def show_command(request: ShowRequest) -> None:
    """Show the best backbone, layer and vectors of each task, how sure that is, and what it costs.

    It is what a run ends with. Needs no backbone and no data: what a run has written is enough.

    Example: `python -m benchmark show --tasks knn davis`
    """
    from benchmark.exchange.answering import answered

    found = answered(request)
    if request.json:
        typer.echo(json.dumps([_for_machines(one) for one in found], indent=2, ensure_ascii=False))
        return
    for place, one in enumerate(found):
        typer.echo(("\n" if place else "") + in_words(one))


def in_words(one: "Answered") -> str:
    """The answers of a suite as text, with how to read them."""
    from leaderboards.answer import answer_notes, answer_table

    table = answer_table(one.answers, one.labels)
    return "\n".join([f"suite {one.suite}", "", table, "", *answer_notes(one.answers)]).rstrip()


def _for_machines(one: "Answered") -> dict[str, object]:
    from leaderboards.answer import answer_frame

    rows = answer_frame(one.answers).to_json(orient="records", double_precision=15)
    return {"suite": one.suite, "answers": json.loads(rows)}

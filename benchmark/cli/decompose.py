"""The command `decompose`: what lies between two protocols. Heavy libraries are imported when it runs."""

import typer

from benchmark.cli.interrupt import ended_by_signals
from benchmark.cli.options import command_of
from benchmark.engines.progress import Terminal
from benchmark.request.request import DecomposeCommand

WITHOUT = ("tasks", "protocol", "floor", "examples", "poolings", "transform", "fuse")


@command_of(DecomposeCommand, without=WITHOUT)
def decompose_command(given: DecomposeCommand) -> None:
    """Take the difference between two protocols apart, choice by choice, on the same features.

    Example: `python -m benchmark decompose spair --from standard --to insid3 -b dino-b16 --data DIR`
    """
    report = Terminal()
    with ended_by_signals(report, "interrupted; what is finished is kept, run again to go on"):
        from benchmark.exchange.decomposing import decompose
        from benchmark.plan.decomposed import Given
        from leaderboards.pages.decomposition import changes_table
        from leaderboards.pages.markdown import table
        from tasks.protocols import find_protocol

        ends = (
            Given(find_protocol(given.start), given.from_tap, given.from_transform),
            Given(find_protocol(given.to), given.to_tap, given.to_transform),
        )
        found = decompose(given.request, given.task, ends, report)
    for backbone in dict.fromkeys(one.backbone for one in found.changes):
        own = [one for one in found.changes if one.backbone == backbone and one.chosen == "best"]
        typer.echo(f"\n{backbone}\n\n{table(changes_table(own, found.steps), left=4)}")
    for failure in found.failures:
        typer.echo(f"failed: {failure}", err=True)
    typer.echo("\n" + "\n".join(str(path) for path in found.files))
    raise typer.Exit(1 if found.failures else 0)

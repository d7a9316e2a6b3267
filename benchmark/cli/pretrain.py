"""The command `pretrain`: trains a mini backbone. Heavy libraries are imported when it runs."""

import typer

from benchmark.cli.options import command_of
from benchmark.engines.progress import Terminal
from benchmark.pretrain.options import Pretraining


@command_of(Pretraining)
def pretrain_command(wish: Pretraining) -> None:
    """Train a mini backbone with its family's own objective on rendered images.

    Images are rendered once. A training that was interrupted goes on when it is started again. The result is
    a directory in Hugging Face format with a model card. Without options it does what made the packaged
    weights.
    """
    report = Terminal()
    try:
        from benchmark.pretrain.pretrain import pretrain

        folder = pretrain(wish, report)
    except KeyboardInterrupt:
        report.say("interrupted; run again to go on from the last checkpoint")
        raise typer.Exit(130) from None
    typer.echo(folder)

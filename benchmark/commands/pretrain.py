"""Training of mini backbones: the command `pretrain`."""

import typer

from benchmark.commands.command import command, ended_by_signals
from benchmark.pretrain.options import Pretraining


@command("pretrain", Pretraining)
def pretrain_command(wish: Pretraining) -> None:
    """Train a mini backbone with its family's own objective on rendered images.

    Images are rendered once. A training that was interrupted goes on when it is started again. The result is
    a directory in Hugging Face format with a model card. Without options it does what made the packaged
    weights.
    """
    with ended_by_signals("interrupted; run again to go on from the last checkpoint") as report:
        from benchmark.pretrain.pretrain import pretrain

        folder = pretrain(wish, report)
    typer.echo(folder)

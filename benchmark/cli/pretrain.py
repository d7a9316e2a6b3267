"""The command `pretrain`: trains a mini backbone. Heavy libraries are imported when it runs."""

import typer

from benchmark.cli.interrupt import ended_by_signals
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
    with ended_by_signals(report, "interrupted; run again to go on from the last checkpoint"):
        from benchmark.pretrain.pretrain import pretrain

        folder = pretrain(wish, report)
    typer.echo(folder)

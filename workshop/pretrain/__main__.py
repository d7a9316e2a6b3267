"""Training of mini backbones: ``python -m workshop.pretrain NAME``."""

from layerboard.benchmark.commands.command import command, ended_by_signals, say
from workshop.command import run_by_arguments
from workshop.pretrain.options import Pretraining
from workshop.pretrain.pretrain import pretrain


@command("pretrain", Pretraining)
def pretrain_command(wish: Pretraining) -> None:
    """Train a mini backbone with its family's own objective on rendered images.

    Images are rendered once. An interrupted training continues when it is started again. The result is a
    directory in Hugging Face format with a model card. The defaults are those of the packaged weights.

    Example: `python -m workshop.pretrain fs --fraction 0.1`
    """
    with ended_by_signals("interrupted; run again to go on from the last checkpoint") as report:
        folder = pretrain(wish, report)
    say(folder)


def main() -> None:
    """Train by the arguments of the process."""
    run_by_arguments(pretrain_command)


if __name__ == "__main__":
    main()

"""Training of mini backbones: the command `pretrain`."""

from layerboard.benchmark.commands.command import command, ended_by_signals, say
from layerboard.benchmark.pretrain.options import Pretraining


@command("pretrain", Pretraining)
def pretrain_command(wish: Pretraining) -> None:
    """Train a mini backbone with its family's own objective on rendered images.

    Images are rendered once. An interrupted training continues when it is started again. The result is a
    directory in Hugging Face format with a model card. The defaults are those of the packaged weights.

    Example: `layerboard pretrain fs --fraction 0.1`
    """
    with ended_by_signals("interrupted; run again to go on from the last checkpoint") as report:
        from layerboard.benchmark.pretrain.pretrain import pretrain

        folder = pretrain(wish, report)
    say(folder)

"""Training of mini backbones: the command `pretrain`."""

import shlex
from functools import partial
from typing import Literal

from layerboard.benchmark import parsers
from layerboard.benchmark.commands.command import command, ended_by_signals, say
from layerboard.benchmark.option import Form, OnePath, Option, Plain
from layerboard.benchmark.request import Cache, Workers, cache_option

OBJECTIVES = ("fs", "clip", "dino", "moco", "mae", "beit", "resnet")  # of `mini.training.methods`

TrainingDtype = Literal["auto", "float32", "bfloat16"]


class Pretraining(Form):
    """What `pretrain` is asked for."""

    objective: Plain[str] = Option(..., "What the backbone learns by.", parsers.text, choices=OBJECTIVES)
    steps: Plain[int | None] = Option(
        None, "Updates of the weights.", least=1, usual="those of the packaged weights"
    )
    batch_size: Plain[int] = Option(64, "Images in each.", least=2)
    images: Plain[int] = Option(48_000, "Different training images.", least=2)
    image_size: Plain[int] = Option(96, "Their side in pixels, at least 16; crops are taken from them.")
    seed: Plain[int] = Option(0, "Of images, weights and every draw.")
    device: Plain[str] = Option("auto", "auto, cpu, cuda or cuda:N.")
    dtype: Plain[TrainingDtype] = Option(
        "auto", "Of the forward; auto: bfloat16 where the device multiplies in it, else float32."
    )
    output: OnePath = Option(
        "results/pretrained", "Folder below which the backbone's directory is written.", also="-o"
    )
    cache: Cache = cache_option("Folder of rendered images; they serve later runs.")
    workers: Workers = Option(
        None, "Processes that render.", least=1, instead=parsers.default_workers, usual="processors"
    )
    resume: Plain[bool] = Option(True, "Go on from the checkpoint in the output folder.")
    pooling: Plain[Literal["cls", "mean"] | None] = Option(None, "fs: what the classifier sees.")
    no_skip: Plain[int | None] = Option(None, "fs: block without skip connections.", least=1)
    narrow: Plain[bool] = Option(False, "fs: the network of 64 channels that variants are compared on.")
    fraction: Plain[float] = Option(1.0, "fs, resnet: share of the images of each class.")
    learning_rate: Plain[float | None] = Option(
        None, "Peak, for batches of 256.", partial(parsers.positive, most=1000), usual="the recipe's"
    )
    log_every: Plain[int] = Option(50, "Steps from one line to the next.", least=1)
    checkpoint_every: Plain[int] = Option(500, "Steps from checkpoint to checkpoint.", least=1)
    probe_every: Plain[int] = Option(
        0, "Steps from one k-NN and linear probe to the next; 0: at the end.", least=0
    )
    install: Plain[bool] = Option(False, "Copy the result into the package, for the mini suite.")

    @property
    def name(self) -> str:
        """Name of the backbone: ``mini-<objective>``, and what makes a variant of it."""
        skip = f"noskip{self.no_skip}" if self.no_skip else ""
        share = "" if self.fraction == 1 else f"{100 * self.fraction:g}pct"
        seed = f"seed{self.seed}" if self.seed else ""
        return "-".join(filter(None, [self.entry, self.pooling, skip, share, seed]))

    @property
    def entry(self) -> str:
        """Name of the entry whose network is trained."""
        return f"mini-{self.objective}{64 if self.narrow else ''}"  # channels of the narrow network

    @property
    def command(self) -> str:
        """The command that does the same again, without folders."""
        words = ["layerboard", "pretrain", self.objective]
        for name in ("steps", "batch_size", "images", "image_size", "seed", "device", "dtype"):
            words += [f"--{name.replace('_', '-')}", str(getattr(self, name))]
        words += ["--narrow"] if self.narrow else []
        words += ["--pooling", self.pooling] if self.pooling else []
        words += ["--no-skip", str(self.no_skip)] if self.no_skip else []
        words += [] if self.fraction == 1 else ["--fraction", f"{self.fraction:g}"]
        words += ["--learning-rate", f"{self.learning_rate:g}"] if self.learning_rate else []
        return shlex.join(words)


@command("pretrain", Pretraining)
def pretrain_command(wish: Pretraining) -> None:
    """Train a mini backbone with its family's own objective on rendered images.

    Images are rendered once. A training that was interrupted goes on when it is started again. The result is
    a directory in Hugging Face format with a model card. Without options it does what made the packaged
    weights.
    """
    with ended_by_signals("interrupted; run again to go on from the last checkpoint") as report:
        from layerboard.benchmark.pretrain.pretrain import pretrain

        folder = pretrain(wish, report)
    say(folder)

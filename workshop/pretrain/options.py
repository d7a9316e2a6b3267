"""Options of a training of a mini backbone, and its name and command, which follow from them."""

import shlex
from functools import partial
from typing import Literal

from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Form, OnePath, Option, Plain
from layerboard.benchmark.forms.request import Cache, Workers, cache_option

OBJECTIVES = ("fs", "clip", "dino", "moco", "mae", "beit", "resnet")  # of `workshop.training.methods`

TrainingDtype = Literal["auto", "float32", "bfloat16"]


class Pretraining(Form):
    """Options of a training."""

    objective: Plain[str] = Option(..., "Training objective.", parsers.text, choices=OBJECTIVES)
    steps: Plain[int | None] = Option(
        None, "Optimisation steps.", least=1, usual="as for the packaged weights"
    )
    batch_size: Plain[int] = Option(64, "Images per step.", least=2)
    images: Plain[int] = Option(48_000, "Number of training images to render.", least=2)
    image_size: Plain[int] = Option(96, "Side of the images in pixels, at least 16, before cropping.")
    seed: Plain[int] = Option(0, "Random seed of images, initial weights and augmentations.")
    device: Plain[str] = Option("auto", "Device: auto, cpu, cuda or cuda:N.")
    dtype: Plain[TrainingDtype] = Option("auto", "Dtype of the forward pass; auto: bfloat16 if supported.")
    output: OnePath = Option("results/pretrained", "Parent folder of the written directory.", also="-o")
    cache: Cache = cache_option("Folder of rendered images, which later runs reuse.")
    workers: Workers = Option(
        None,
        "Processes for rendering.",
        least=1,
        instead=parsers.default_workers,
        usual="number of processors",
    )
    resume: Plain[bool] = Option(True, "Continue from the checkpoint in the output folder.")
    pooling: Plain[Literal["cls", "mean"] | None] = Option(None, "fs: input of the classifier.")
    no_skip: Plain[int | None] = Option(None, "fs: number of the block without skip connections.", least=1)
    narrow: Plain[bool] = Option(False, "fs: a network with 64 channels, for comparisons of variants.")
    fraction: Plain[float] = Option(1.0, "fs, resnet: fraction of the images of each class to train on.")
    learning_rate: Plain[float | None] = Option(
        None, "Peak learning rate at batch 256.", partial(parsers.positive, most=1000), usual="the recipe's"
    )
    log_every: Plain[int] = Option(50, "Steps between log lines.", least=1)
    checkpoint_every: Plain[int] = Option(500, "Steps between checkpoints.", least=1)
    probe_every: Plain[int] = Option(0, "Steps between k-NN and linear probes; 0: only at the end.", least=0)
    install: Plain[bool] = Option(False, "Copy the weights into the package, for use by the mini suite.")

    @property
    def name(self) -> str:
        """Name of the backbone: ``mini-<objective>``, with a suffix for each option that makes a variant."""
        skip = f"noskip{self.no_skip}" if self.no_skip else ""
        share = "" if self.fraction == 1 else f"{100 * self.fraction:g}pct"
        seed = f"seed{self.seed}" if self.seed else ""
        return "-".join(filter(None, [self.entry, self.pooling, skip, share, seed]))

    @property
    def entry(self) -> str:
        """Name of the registry entry whose network is trained."""
        return f"mini-{self.objective}{64 if self.narrow else ''}"  # channels of the narrow network

    @property
    def command(self) -> str:
        """The command that repeats the training, without folders."""
        words = ["python", "-m", "workshop.pretrain", self.objective]
        for name in ("steps", "batch_size", "images", "image_size", "seed", "device", "dtype"):
            words += [f"--{name.replace('_', '-')}", str(getattr(self, name))]
        words += ["--narrow"] if self.narrow else []
        words += ["--pooling", self.pooling] if self.pooling else []
        words += ["--no-skip", str(self.no_skip)] if self.no_skip else []
        words += [] if self.fraction == 1 else ["--fraction", f"{self.fraction:g}"]
        words += ["--learning-rate", f"{self.learning_rate:g}"] if self.learning_rate else []
        return shlex.join(words)

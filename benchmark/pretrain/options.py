"""Every option of `pretrain`, declared once. Imports no torch."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from benchmark import parsers
from benchmark.option import OnePath, OneWord, Option, OptionalReal, OptionalWhole, Switch, Whole

OBJECTIVES = ("fs", "clip", "dino", "moco", "mae", "beit", "resnet")
"""Names of the methods of `mini.training.methods`."""

NARROW_WIDTH = 64
"""Channels of the networks of ``--narrow``: their entries' names end with it."""

TrainingDtype = Literal["auto", "float32", "bfloat16"]
Pooling = Literal["cls", "mean"]


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """What `pretrain` is asked for; the command has exactly its options."""

    objective: OneWord = Option(..., "What the backbone learns by.", parsers.text, choices=OBJECTIVES)
    steps: OptionalWhole = Option(
        None, "Updates of the weights.", parsers.whole, least=1, usual="those of the packaged weights"
    )
    batch_size: Whole = Option(64, "Images in each.", parsers.whole, least=2)
    images: Whole = Option(48_000, "Different training images.", parsers.whole, least=2)
    image_size: Whole = Option(
        96, "Their side in pixels, at least 16; crops are taken from them.", parsers.whole
    )
    seed: Whole = Option(0, "Of images, weights and every draw.", parsers.whole)
    device: OneWord = Option("auto", "auto, cpu, cuda or cuda:N.", parsers.text)
    dtype: Option[TrainingDtype, TrainingDtype] = Option(
        "auto",
        "Of the forward; auto: bfloat16 where the device multiplies in it, else float32.",
        parsers.choice,
        choices=get_args(TrainingDtype),
    )
    output: OnePath = Option(
        "results/pretrained",
        "Folder below which the backbone's directory is written.",
        parsers.path,
        short="-o",
    )
    cache: Option[str | Path | None, Path] = Option(
        None,
        "Folder of rendered images; they serve later runs.",
        parsers.path,
        instead=parsers.default_cache,
        usual="below the user's cache folder",
    )
    workers: Option[int | None, int] = Option(
        None,
        "Processes that render.",
        parsers.whole,
        least=1,
        instead=parsers.default_workers,
        usual="processors",
    )
    resume: Switch = Option(True, "Go on from the checkpoint in the output folder.", parsers.switch)
    pooling: Option[Pooling | None, Pooling | None] = Option(
        None, "fs: what the classifier sees.", parsers.choice, choices=get_args(Pooling)
    )
    no_skip: OptionalWhole = Option(None, "fs: block without skip connections.", parsers.whole, least=1)
    narrow: Switch = Option(
        False, "fs: the network of 64 channels that variants are compared on.", parsers.switch
    )
    fraction: Option[float, float] = Option(
        1.0, "fs, resnet: share of the images of each class.", parsers.real
    )
    learning_rate: OptionalReal = Option(
        None, "Peak, for batches of 256.", parsers.rate, usual="the recipe's"
    )
    log_every: Whole = Option(50, "Steps from one line to the next.", parsers.whole, least=1)
    checkpoint_every: Whole = Option(500, "Steps from checkpoint to checkpoint.", parsers.whole, least=1)
    probe_every: Whole = Option(
        0, "Steps from one k-NN and linear probe to the next; 0: at the end.", parsers.whole, least=0
    )
    install: Switch = Option(False, "Copy the result into the package, for the mini suite.", parsers.switch)

    @property
    def name(self) -> str:
        """Name of the backbone: ``mini-<objective>``, and what makes a variant of it."""
        parts = [self.entry]
        if self.pooling is not None:
            parts.append(self.pooling)
        if self.no_skip is not None:
            parts.append(f"noskip{self.no_skip}")
        if self.fraction != 1:
            parts.append(f"{100 * self.fraction:g}pct")
        if self.seed != 0:
            parts.append(f"seed{self.seed}")
        return "-".join(parts)

    @property
    def entry(self) -> str:
        """Name of the entry whose network is trained."""
        return f"mini-{self.objective}{NARROW_WIDTH if self.narrow else ''}"

    @property
    def command(self) -> str:
        """The command that does the same again, without folders."""
        optional = {
            "--pooling": self.pooling,
            "--no-skip": self.no_skip,
            "--fraction": None if self.fraction == 1 else f"{self.fraction:g}",
            "--learning-rate": None if self.learning_rate is None else f"{self.learning_rate:g}",
        }
        words = f"python -m benchmark pretrain {self.objective} --steps {self.steps}".split()
        words += f"--batch-size {self.batch_size} --images {self.images}".split()
        words += f"--image-size {self.image_size} --seed {self.seed}".split()
        words += f"--device {self.device} --dtype {self.dtype}".split()
        words += ["--narrow"] if self.narrow else []
        words += [
            word for name, value in optional.items() if value is not None for word in (name, str(value))
        ]
        return shlex.join(words)

"""Every option of `pretrain`, declared once. Imports no torch."""

import shlex
from dataclasses import dataclass
from functools import partial
from typing import Literal

from benchmark import parsers
from benchmark.option import OnePath, Option, Plain
from benchmark.request import Cache, Workers

OBJECTIVES = ("fs", "clip", "dino", "moco", "mae", "beit", "resnet")
"""Names of the methods of `mini.training.methods`."""

NARROW_WIDTH = 64
"""Channels of the networks of ``--narrow``: their entries' names end with it."""

TrainingDtype = Literal["auto", "float32", "bfloat16"]
Pooling = Literal["cls", "mean"]


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """What `pretrain` is asked for; the command has exactly its options."""

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
    cache: Cache = Option(
        None,
        "Folder of rendered images; they serve later runs.",
        instead=parsers.default_cache,
        usual="below the user's cache folder",
    )
    workers: Workers = Option(
        None, "Processes that render.", least=1, instead=parsers.default_workers, usual="processors"
    )
    resume: Plain[bool] = Option(True, "Go on from the checkpoint in the output folder.")
    pooling: Plain[Pooling | None] = Option(None, "fs: what the classifier sees.")
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

"""Cost of the analyses of attention beside a bare forward with eager attention, as ratios of one run.

    python -m perf.attention                 ViT-B/16 shape with random weights, on the CPU
    python -m perf.attention --device cuda --batch 64 --rounds 20

Average maps, distances, shares and saliency look at the same batches, as if they had the same images. Prints
the time of all together, and with ``--each`` of each alone, over the bare forward; candidates take turns, and
ratios are medians of the rounds' ratios. On a CPU, seconds are those of the processor, which other work on
the machine hardly changes. Peak memory is that of fresh processes.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from benchmark.extraction.collectors import MeasuredCollector
from benchmark.extraction.loading import Batch, Member
from perf.one_pass import random_vit, ratio, take_turns
from tasks.analyses.attention_distance import AttentionDistance
from tasks.analyses.attention_maps import AttentionMapsProblem
from tasks.analyses.attention_shares import AttentionShares
from tasks.analyses.saliency import SaliencyProblem
from tasks.base import Group, MeasuredProblem, Source
from tasks.datasets.base import Coverage, RegionImage, Regions
from tasks.protocols import STANDARD
from tasks.sources import Batches, ClassificationSources
from zoo.features import Backbone, Shown
from zoo.spec import Layer

SIDE = 224


@dataclass(frozen=True)
class Nothing:
    """An image that is never opened, with a mask: its upper left quarter."""

    key: str
    label: int = 0
    box: None = None

    def open(self) -> Image.Image:
        """A black image."""
        return Image.new("RGB", (SIDE, SIDE))

    def signature(self) -> str:
        """Its name."""
        return self.key

    def mask(self) -> NDArray[np.uint8]:
        """[height width], 0 and 1."""
        mask = np.zeros((SIDE, SIDE), np.uint8)
        mask[: SIDE // 2, : SIDE // 2] = 1
        return mask


def problems(batch: int) -> dict[str, MeasuredProblem[Any]]:
    """The analyses, of a batch of images."""
    samples = tuple(Nothing(f"image {number}") for number in range(batch))
    source = Source("images", (Group("batch", samples),), STANDARD.images)
    none = np.zeros(0, np.int64)
    where = ClassificationSources(source, None, source, none, none, Batches(batch, None))
    masks = tuple(RegionImage(sample, (SIDE, SIDE), (sample,)) for sample in samples)
    return {
        "attention-maps": AttentionMapsProblem(where, STANDARD.maps),
        "attention-distance": AttentionDistance(where),
        "attention-shares": AttentionShares(where),
        "saliency": SaliencyProblem(Regions("masks", masks, {}, Coverage(())), STANDARD.saliency),
    }


def analyse(backbone: Backbone, pixels: torch.Tensor, asked: list[MeasuredProblem[Any]]) -> None:
    """Show a batch to analyses; without any, compute the probabilities alone."""
    blocks = [Layer(index) for index in range(1, backbone.spec.depth + 1)]
    view = STANDARD.images.scaled(SIDE, backbone.spec.patch_size)
    members = tuple(Member(0, place, 1, (SIDE, SIDE)) for place in range(len(pixels)))
    collectors = [MeasuredCollector(one, view, one.feed.layers(blocks, backbone.spec)) for one in asked]

    def visitor(shown: Shown) -> None:
        for collector in collectors:
            collector.see(Batch(pixels, members), shown)

    layers = [Layer(block.index, "probabilities") for block in blocks]
    backbone.visit(pixels, visitor, layers)
    for collector in collectors:
        collector.finish(range(1))


def candidates(arguments: argparse.Namespace) -> dict[str, Callable[[], object]]:
    """What takes turns."""
    with tempfile.TemporaryDirectory() as folder:
        backbone = random_vit(Path(folder), arguments.device)
    pixels = torch.randint(0, 256, (arguments.batch, 3, SIDE, SIDE), dtype=torch.uint8).to(arguments.device)
    every = problems(arguments.batch)
    alone = {name: (lambda one=one: analyse(backbone, pixels, [one])) for name, one in every.items()}
    return {
        "bare forward": lambda: analyse(backbone, pixels, []),
        **(alone if arguments.each else {}),
        "all together": lambda: analyse(backbone, pixels, list(every.values())),
    }


def memory_of(name: str, arguments: argparse.Namespace) -> None:
    """Print the peak resident memory of this Linux process in MiB while one candidate runs."""
    candidate = candidates(arguments)[name]
    candidate()
    Path("/proc/self/clear_refs").write_text("5")  # the peak of loading does not count
    candidate()
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def peak_memory(name: str, arguments: argparse.Namespace) -> float:
    """The least peak of two processes: what the allocator happens to keep varies."""
    command = [sys.executable, "-m", "perf.attention", "--memory-of", name, "--batch", str(arguments.batch)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(2)]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--each", action="store_true", help="each analysis alone, too")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        memory_of(arguments.memory_of, arguments)
        return
    clock = time.perf_counter if arguments.device.startswith("cuda") else time.process_time
    times = take_turns(candidates(arguments), arguments.rounds, arguments.device, clock)
    print(f"ViT-B/16 shape, batch {arguments.batch}, {arguments.device}, float32, eager attention")
    for name, seconds in times.items():
        cost = ratio(seconds, times["bare forward"])
        print(f"  {name:20} {statistics.median(seconds):8.3f} s   {cost:.3f} x bare", flush=True)
    if sys.platform == "linux" and not arguments.device.startswith("cuda"):
        extra = peak_memory("all together", arguments) - peak_memory("bare forward", arguments)
        print(f"  peak memory of all together over the bare forward {extra:+.0f} MiB")


if __name__ == "__main__":
    main()

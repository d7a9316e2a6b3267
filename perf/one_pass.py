"""Cost of one pass that keeps every layer, and of CKA, as ratios measured in one run.

    python perf/one_pass.py                 ViT-B/16 shape with random weights, on the CPU
    python perf/one_pass.py --device cuda --batch 64 --rounds 20

Prints: time of a pass that keeps every layer over the bare forward; what the loop over layers costs that the
package replaces; extra peak memory of the pass with a few and with all layers; forwards per image; CKA of all
pairs of layers by one product over a plain loop over pairs. Candidates take turns, and ratios are medians
of the rounds' ratios, so that a drifting machine hits all of them alike.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tasks.metrics.similarity import CkaAccumulator, centred_gram
from zoo.features import Backbone, LayerFeatures, Shown
from zoo.load.backbone import load
from zoo.registry import find
from zoo.spec import Layer


def random_vit(folder: Path, device: str) -> Backbone:
    """A ViT-B/16 with seeded random weights, saved in Hugging Face format and loaded like any other."""
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    ViTModel(ViTConfig(), add_pooling_layer=False).save_pretrained(folder)
    (spec,) = find([str(folder)])
    return load(spec, device=torch.device(device), dtype=torch.float32, cache_dir=folder / "cache")


def keep_vectors(backbone: Backbone, pixels: torch.Tensor, layers: list[Layer] | None) -> list[torch.Tensor]:
    """What a pass keeps of a batch: class token and mean of each layer."""
    kept: list[torch.Tensor] = []

    def visitor(shown: Shown) -> None:
        assert isinstance(shown, LayerFeatures)
        assert shown.cls is not None
        kept.extend((shown.cls.clone(), shown.mean))

    backbone.visit(pixels, visitor, layers)
    return kept


def take_turns(
    candidates: dict[str, Callable[[], object]],
    rounds: int,
    device: str,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each candidate in rounds in which all of them run once."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for round_number in range(rounds + 1):
        for name, candidate in candidates.items():
            begin = clock()
            candidate()
            if device.startswith("cuda"):
                torch.cuda.synchronize()
            if round_number:  # the first round warms up
                times[name].append(clock() - begin)
    return times


def ratio(first: list[float], second: list[float]) -> float:
    """Median of the rounds' ratios: what slows the machine down slows both of a round."""
    return statistics.median(a / b for a, b in zip(first, second, strict=True))


def peak_memory(mode: str, arguments: argparse.Namespace) -> float:
    """Peak resident memory in MiB of a fresh Linux process that shows batches in one mode.

    The least of three processes: what the allocator happens to keep varies by a hundred MiB.
    """
    command = [sys.executable, __file__, "--memory-of", mode, "--batch", str(arguments.batch)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(3)]
    return min(float(run.stdout) for run in runs)


def memory_of(mode: str, batch: int) -> None:
    """Print the peak memory of this process after a few batches of one mode."""
    with tempfile.TemporaryDirectory() as folder:
        backbone = random_vit(Path(folder), "cpu")
        pixels = torch.randint(0, 256, (batch, 3, 224, 224), dtype=torch.uint8)
        layers = {"bare": [], "three": [Layer(4), Layer(8), Layer(12)], "all": None}[mode]
        keep_vectors(backbone, pixels, [])
        Path("/proc/self/clear_refs").write_text("5")  # the peak of loading does not count
        for _ in range(3):
            keep_vectors(backbone, pixels, layers)
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def loop_cka(first: list[torch.Tensor], second: list[torch.Tensor]) -> torch.Tensor:
    """CKA of all pairs of layers the plain way: Gram matrices and HSIC again for every pair."""

    def hsic(k: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        n = len(k)
        total = (k * other).sum() + k.sum() * other.sum() / ((n - 1) * (n - 2))
        return (total - 2 / (n - 2) * (k.sum(0) @ other.sum(0))) / (n * (n - 3))

    def gram(x: torch.Tensor) -> torch.Tensor:
        product = (x - x.mean(0)) @ (x - x.mean(0)).T
        return product - torch.diag(product.diagonal())

    out = torch.empty(len(first), len(second))
    for i, x in enumerate(first):
        for j, y in enumerate(second):
            k, other = gram(x), gram(y)
            out[i, j] = hsic(k, other) / (hsic(k, k) * hsic(other, other)).sqrt()
    return out


def product_cka(layers: list[torch.Tensor]) -> torch.Tensor:
    """CKA of all pairs by the package."""
    accumulator = CkaAccumulator()
    accumulator.add(torch.stack([centred_gram(x) for x in layers]).float())
    return accumulator.matrix().value


def forwards(backbone: Backbone, pixels: torch.Tensor) -> int:
    """How often the last block runs while every layer of a batch is kept."""
    count = 0

    def visitor(features: Shown) -> None:
        nonlocal count
        count += features.layer == Layer(backbone.spec.depth)

    backbone.visit(pixels, visitor, None)
    return count


def measure_pass(arguments: argparse.Namespace) -> None:
    """Print the cost of a pass beside the bare forward."""
    with tempfile.TemporaryDirectory() as folder:
        backbone = random_vit(Path(folder), arguments.device)
    side = (arguments.batch, 3, 224, 224)
    pixels = torch.randint(0, 256, side, dtype=torch.uint8).to(arguments.device)
    times = take_turns(
        {
            "bare": lambda: backbone.visit(pixels, lambda features: None, []),
            "pass": lambda: keep_vectors(backbone, pixels, None),
        },
        arguments.rounds,
        arguments.device,
    )
    depth, cost = backbone.spec.depth, ratio(times["pass"], times["bare"])
    bare, kept = (statistics.median(times[name]) for name in ("bare", "pass"))
    print(f"ViT-B/16 shape, batch {arguments.batch}, {arguments.device}, float32")
    print(f"  bare forward                    {bare:8.3f} s")
    print(f"  pass that keeps every layer     {kept:8.3f} s   {cost:.3f} x bare")
    print(f"  a forward for every layer       {depth * bare:8.3f} s   {depth} x bare (computed)")
    print(f"  forwards per image              {forwards(backbone, pixels):8d}     for {depth + 2} layers")
    if sys.platform == "linux" and not arguments.device.startswith("cuda"):
        base, three, every = (peak_memory(mode, arguments) for mode in ("bare", "three", "all"))
        print(f"  peak memory over bare forward   {three - base:+8.0f} MiB for 3 layers")
        print(f"                                  {every - base:+8.0f} MiB for all layers")


def measure_cka(arguments: argparse.Namespace) -> None:
    """Print the cost of CKA of two backbones of 12 layers beside a loop over pairs."""
    torch.manual_seed(0)
    layers = [torch.randn(256, 768, device=arguments.device) for _ in range(24)]
    times = take_turns(
        {"loop": lambda: loop_cka(layers[:12], layers[12:]), "product": lambda: product_cka(layers)},
        arguments.rounds,
        arguments.device,
    )
    difference = (loop_cka(layers[:12], layers[12:]) - product_cka(layers)[:12, 12:]).abs().max()
    print("CKA, 12 x 12 layers, 256 images, 768 dimensions")
    loop, product = (statistics.median(times[name]) for name in ("loop", "product"))
    print(f"  loop over pairs                 {loop:8.4f} s")
    faster = ratio(times["loop"], times["product"])
    print(f"  one product (all 24 x 24)       {product:8.4f} s   {faster:.1f} x as fast")
    print(f"  largest difference              {float(difference):8.1e}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory-of", choices=("bare", "three", "all"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        memory_of(arguments.memory_of, arguments.batch)
        return
    measure_pass(arguments)
    measure_cka(arguments)


if __name__ == "__main__":
    main()

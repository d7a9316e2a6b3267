"""Candidates that take turns within one process, and the ratios of their rounds."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Setting:
    """How it is measured.

    Attributes:
        device: Where backbones and products run.
        dtype: Of forwards.
        rounds: How often everything takes its turn, after one round that warms up.
        quick: Whether small shapes stand for the true ones: shows that it works, not how fast.
        batch: Images of a batch of a pass.
    """

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: torch.dtype = torch.float32
    rounds: int = 5
    quick: bool = False
    batch: int = 8


@dataclass(frozen=True, slots=True)
class Rounds:
    """Seconds of each candidate in each round."""

    seconds: Mapping[str, list[float]]

    def ratio(self, first: str, second: str) -> float:
        """Median of the rounds' ratios: what slows the machine down slows both of a round."""
        pairs = zip(self.seconds[first], self.seconds[second], strict=True)
        return statistics.median(one / other for one, other in pairs)

    def milliseconds(self, name: str) -> float:
        """Median of a candidate."""
        return 1000 * statistics.median(self.seconds[name])

    def figures(self, *names: str) -> dict[str, float]:
        """Medians in milliseconds of some candidates, or of all."""
        return {name: self.milliseconds(name) for name in names or self.seconds}


def take_turns(
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    device: torch.device,
    clock: Clock = time.perf_counter,
) -> Rounds:
    """Run all candidates once in each round; the first round warms up and does not count."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(rounds + 1):
        for name, candidate in candidates.items():
            begin = clock()
            candidate()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if number:
                times[name].append(clock() - begin)
    return Rounds(times)

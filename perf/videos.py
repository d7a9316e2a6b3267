"""Propagation of a video's labels, beside the products that its windows hold."""

from collections.abc import Iterator
from itertools import cycle

import torch
from torch import Tensor

from perf.rounds import Setting, take_turns
from perf.rows import Budget, Row
from tasks.metrics.propagation import Propagator
from tasks.protocols import STANDARD
from tasks.registry import config_of

OBJECTS = 3

BOUND = (
    "on a CPU products in windows alone take 1.8 to 2 x as long as so many in one matrix, tiles as they may"
)
"""Why a step stays above its budget there: small products, a fifth too many, that read sources again."""


def video_rows(setting: Setting) -> Iterator[Row]:
    """A frame and layer of DAVIS at 480 pixels, patch 16, when all frames that count are there."""
    rule = config_of(STANDARD, "davis")
    height, width, dim = (8, 10, 16) if setting.quick else (28, 49, 384)
    seeded = torch.Generator().manual_seed(0)
    every = torch.randn(3 * (rule.n_last_frames + 1), height, width, dim, generator=seeded).to(setting.device)
    frames = every[: rule.n_last_frames + 1]
    labels = torch.nn.functional.one_hot(torch.arange(height * width) % (OBJECTS + 1)).float()
    propagator = Propagator(
        frames[0],
        labels.view(height, width, -1).to(setting.device),
        rule.heard,
    )
    for frame in frames[1:]:
        propagator.step(frame)
    held = len(frames) * covered(height, rule.radius) * covered(width, rule.radius)
    tokens, sources = _operands(frames, round(held / (height * width)))
    coming = cycle(every)  # a frame that came twice would tie with itself
    rounds = take_turns(
        {"products": lambda: tokens @ sources, "step": lambda: propagator.step(next(coming))},
        4 * setting.rounds,
        setting.device,
    )
    yield Row(
        f"DAVIS, a frame a layer, {height} x {width} x {dim}, over as many products as its windows hold",
        rounds.ratio("step", "products"),
        budget=Budget(1.35),
        figures=rounds.figures(),
        note=f"{held / 1e6:.1f} million products of {dim} channels; {BOUND}",
    )


def covered(length: int, radius: int) -> int:
    """Cells that windows of a radius cover along a side, of all its cells together."""
    return sum(min(length, cell + radius + 1) - max(0, cell - radius) for cell in range(length))


def _operands(frames: Tensor, sources: int) -> tuple[Tensor, Tensor]:
    """A frame's tokens [tokens dim], and sources [dim sources] of which each has as many as in its window."""
    tokens = frames[-1].flatten(0, 1)
    return tokens, frames.flatten(0, 2)[:sources].T.contiguous()

"""The whole board of a ViT-S/16, compared with bare forward passes of its images."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from layerboard.benchmark.api import RunSummary, execute
from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.passes.loading import Batch, Loader
from layerboard.benchmark.plan.location import find_data, find_protocols
from layerboard.benchmark.plan.plan import Plan, make_plan, view_for
from layerboard.benchmark.plan.suites import choose_suite
from layerboard.zoo.features.backbone import Backbone
from workshop.perf.measuring import Budget, Rounds, Row, Setting
from workshop.perf.networks import random_network, write_random_network

APART = {"davis", "cost"}  # tasks that are measured separately: matching in videos, and time itself


def board_rows(setting: Setting, data: Path | None = None) -> Iterator[Row]:
    """All tasks that run by default except DAVIS and cost, passes and scores together.

    They use the real datasets in the folder ``data``, or else those of the mini suite.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_random_network(folder / "vit-s16", "ViT-S/16")
        request = _request(setting, folder, data)
        suite = choose_suite(request)
        location = find_data(request, suite, find_protocols(request, suite))
        there = {task.entry.name for task in make_plan((), (), location).tasks.every}
        request = replace(request, tasks=sorted(there - APART))
        first = _board(request, folder, 0)  # warms up
        shown = list(_shown(first.plan, setting))
        backbone = random_network("ViT-S/16", setting)
        _bare(backbone, shown)
        times: dict[str, list[float]] = {"bare": [], "board": []}
        for number in range(max(1, setting.rounds // 2)):
            times["bare"].append(_bare(backbone, shown))
            times["board"].append(_board(request, folder, number + 1).seconds)
    what = f"whole board of a ViT-S/16 on {sum(map(len, shown)):,} images, over their bare forwards"
    note = f"{first.suites[0]}: {', '.join(sorted({task.entry.name for task in first.plan.tasks.every}))}"
    yield Rounds(times).row(what, ("board", "bare"), Budget(1.5 if setting.card else 2.0), note)


def _request(setting: Setting, folder: Path, data: Path | None) -> Request:
    """A run of one network on the available datasets; with ``quick`` on a few generated images."""
    images: list[Path] = []
    if setting.quick:
        images.append(folder / "images")
        random = np.random.default_rng(0)
        for kind, number in product(range(3), range(4)):
            path = images[0] / f"class-{kind}" / f"{number}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(random.integers(0, 256, (40, 48, 3), dtype=np.uint8)).save(path)
    return Request(
        [str(folder / "vit-s16")],
        data=data if not setting.quick else None,
        images=images,
        cache=folder / "cache",
        output=folder / "output",
        device=str(setting.device),
        dtype=setting.dtype,
        limit=None if setting.quick or data is not None else 8,
        floor=False,
        examples=False,
    )


def _board(request: Request, folder: Path, number: int) -> RunSummary:
    """A run with an empty cache."""
    cache = folder / f"cache-{number}"
    cache.mkdir()
    return execute(replace(request, cache=cache, output=folder / f"output-{number}"), Silent())


def _shown(plan: Plan, setting: Setting) -> Iterator[Tensor]:
    (spec,) = plan.backbones
    pace = Request()
    for planned in plan.passes:
        source = replace(planned.source, view=view_for(spec, planned.source.view))
        shards, loader = range(source.shards), Loader(pace.workers)
        decoded = loader.batches(source, shards, pace.batch_on(setting.device.type), spec.input_size)
        yield from (batch.pixels.to(setting.device) for batch in decoded if isinstance(batch, Batch))


def _bare(backbone: Backbone, shown: list[Tensor]) -> float:
    begin = perf_counter()
    for pixels in shown:
        backbone.visit(pixels, lambda _: None, [])
    if backbone.device.type == "cuda":
        torch.cuda.synchronize(backbone.device)
    return perf_counter() - begin

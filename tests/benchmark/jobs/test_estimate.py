"""What passes are guessed to take, beside what the field counts."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest
import torch

from layerboard.benchmark.engines.choose import device_name
from layerboard.benchmark.jobs.estimate import OVERHEAD, SPEED, image_seconds, multiply_adds
from layerboard.benchmark.jobs.job import Setup
from layerboard.benchmark.plan.datasets import PlannedTasks
from layerboard.leaderboards.records.files import scored_path
from layerboard.tasks.analyses.cost import CostTask
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.zoo.registry.find import find
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.doubles import SPEC

VIEW = ResizeCrop(256, 224)


PUBLISHED = (("dino-b16", 17.5e9), ("dino-s16", 4.6e9), ("dino-resnet50", 3.8e9))
"""Of 224 px: Liu et al., ICCV 2021, table 1 (DeiT-B, DeiT-S); He et al., CVPR 2016, table 1 (ResNet-50)."""


@pytest.mark.parametrize(("name", "published"), PUBLISHED)
def test_multiply_adds_are_near_those_that_are_published(name: str, published: float) -> None:
    (spec,) = find([name])
    assert multiply_adds(spec, 224 * 224) == pytest.approx(published, rel=0.25)


def setup(output: Path, **changes: Any) -> Setup:
    tasks = PlannedTasks([CostTask(None, config_of(STANDARD, "cost"))])
    plan = SimpleNamespace(tasks=tasks)
    request = SimpleNamespace(output=output)
    found = SimpleNamespace(plan=plan, spec=SPEC, device=torch.device("cpu"), request=request)
    return cast("Setup", SimpleNamespace(**vars(found) | changes))


def test_a_record_of_cost_takes_the_place_of_the_usual_speed(tmp_path: Path) -> None:
    here = setup(tmp_path)
    (task,) = here.plan.tasks.needing("device")
    adds = multiply_adds(SPEC, 32 * 32)
    assert image_seconds(here, VIEW) == pytest.approx(adds / SPEED["cpu"] + OVERHEAD["cpu"])
    path = tmp_path / "records" / scored_path(task.on(device_name(here.device)).key, SPEC.name)
    path.parent.mkdir(parents=True)
    pd.DataFrame({"metric": ["ms", "images-per-second"], "value": [9.0, 50.0]}).to_parquet(path)
    assert image_seconds(here, VIEW) == pytest.approx(1 / 50 + OVERHEAD["cpu"])
    path.write_bytes(b"damaged")
    assert image_seconds(here, VIEW) == pytest.approx(adds / SPEED["cpu"] + OVERHEAD["cpu"])

"""What passes are guessed to take, beside what the field counts."""

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from layerboard.benchmark.jobs.estimate import OVERHEAD, SPEED, image_seconds, multiply_adds
from layerboard.benchmark.jobs.job import Setup
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


def test_seconds_of_an_image_are_those_of_its_pixels_and_of_what_is_not_the_forward_pass() -> None:
    here = cast("Setup", SimpleNamespace(spec=SPEC, device=torch.device("cpu")))
    adds = multiply_adds(SPEC, 32 * 32)
    assert image_seconds(here, VIEW) == pytest.approx(adds / SPEED["cpu"] + OVERHEAD["cpu"])

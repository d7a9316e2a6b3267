"""The rule of position interpolation in records."""

from dataclasses import replace

import pytest

from layerboard.benchmark.records.records import interpolation_of
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec.origin import OBJECT

RULES = {"dinov2-b14": "dino", "fs-b16": "timm", "openclip-b16": "timm", "resnet50": "", "random": ""}
RULES |= dict.fromkeys(("deit-b16", "mini-dino"), "huggingface")


@pytest.mark.parametrize(("name", "rule"), RULES.items())
def test_records_say_the_rule(name: str, rule: str) -> None:
    (spec,) = find([name])
    assert interpolation_of(spec) == rule
    assert interpolation_of(replace(spec, origin=OBJECT)) == ""

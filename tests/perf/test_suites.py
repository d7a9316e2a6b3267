"""What the full suites take: operations against published ones, and the page against the program."""

from dataclasses import replace
from pathlib import Path

import pytest

from perf.suites import Assumed, need, operations, table
from zoo.registry import find

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


@pytest.mark.parametrize(
    ("name", "published", "tolerance"),
    [
        ("fs-b16", 2 * 17.6, 0.01),  # multiply-adds of 224 px: Touvron et al., DeiT III, table 1
        ("fs-s16", 2 * 4.6, 0.01),
        ("fs-l16", 2 * 61.6, 0.01),
        ("resnet50", 2 * 4.1, 0.15),  # He et al., CVPR 2016; the projections of skips are left out
        ("convnext-t", 2 * 4.5, 0.15),  # Liu et al., CVPR 2022; the convolutions between stages are left out
        ("swin-t", 2 * 4.5, 0.15),  # Liu et al., ICCV 2021; the same
    ],
)
def test_operations_are_those_that_were_published(name, published, tolerance):
    (spec,) = find([name])
    assert operations(spec, (224, 224)) / 1e9 == pytest.approx(published, rel=tolerance)


def test_vectors_on_the_disk():
    (spec,) = find(["dino-b16"])
    images = 1_281_167 + 50_000 + 4993 + 70 + 6322 + 70
    assert need([spec]).disk == images * 14 * 2 * 768 * 4  # 12 blocks, what enters them, after the norm


def test_needs_add_up_and_shrink_with_the_machine():
    (small,), (large,) = find(["dino-s16"]), find(["dino-b16"])
    alone, both = need([large]), need([small, large])
    assert both.forwards == 2 * alone.forwards
    assert both.disk == pytest.approx(1.5 * alone.disk)
    half = need([large], replace(Assumed(), cards=4, cores=64))
    assert half.cards == pytest.approx(2 * alone.cards)
    assert half.cores == pytest.approx(2 * alone.cores)
    low, high = alone.hours
    assert 0 < low < high <= 3 * low


def test_the_page_says_what_the_program_says():
    assert table() in PAGE.read_text(encoding="utf-8")

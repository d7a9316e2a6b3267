import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layerboard.tasks.datasets.catalogue import State, inspect
from layerboard.tasks.datasets.spair import SPAIR_71K_TEST, SpairEntry
from tests.fakes import write_fake_spair
from tests.tasks.datasets.cases import fields
from tests.tasks.datasets.helpers import copy_shuffled, keys

MINI = SpairEntry(pairs=4, categories=2)


def test_layout(tmp_path: Path) -> None:
    write_fake_spair(tmp_path)
    dataset = MINI.read(tmp_path)
    pair = dataset.pairs[2]
    assert (pair.key, pair.category) == ("000003-2008_010000-2008_010001:dog", "dog")
    assert keys(dataset.samples)[pair.target] == "dog/2008_010001.jpg"
    assert repr((pair.source_size, pair.target_box)) == "((50, 40), (2, 2, 48, 38))"  # a part of identities
    assert pair.source_points.shape == pair.target_points.shape == (3, 2)
    assert pair.source_points.dtype == np.float64
    assert dataset.samples[pair.source].open().size == pair.source_size


def test_categories_are_sorted_before_names(tmp_path: Path) -> None:
    write_fake_spair(tmp_path, categories=("zebra", "ant"))
    assert [pair.category for pair in MINI.read(tmp_path).pairs] == ["ant", "ant", "zebra", "zebra"]


@pytest.mark.parametrize("separator", [":", "?", "_"])
def test_separators_and_order_do_not_matter(tmp_path: Path, separator: str) -> None:
    write_fake_spair(tmp_path / "a")
    write_fake_spair(tmp_path / "other", separator=separator)
    copy_shuffled(tmp_path / "other", tmp_path / "b")
    first, second = (MINI.read(tmp_path / name) for name in "ab")
    assert [pair.key for pair in first.pairs] == [pair.key for pair in second.pairs]
    assert keys(first.samples) == keys(second.samples) == sorted(keys(first.samples))


LEVELS = {"viewpoint_variation": 2, "scale_variation": 0, "truncation": 3, "occlusion": 1}


def write_leveled(root: Path, **first: object) -> Path:
    """Four pairs of the same levels, but for those of the first."""
    folder = write_fake_spair(root)
    paths = sorted((folder / "PairAnnotation/test").iterdir())
    for path in paths:
        fields(**LEVELS)(path)
    fields(**first)(paths[0])
    return folder


RIGHT = (
    ("viewpoint_variation", (1, 0, 3)),
    ("scale_variation", (4, 0, 0)),
    ("truncation", (0, 0, 0, 4)),
    ("occlusion", (0, 4, 0, 0)),
)
"""Where the first pair is of the easy viewpoint."""


def test_pairs_of_each_level_are_compared_with_the_official_numbers(tmp_path: Path) -> None:
    write_leveled(tmp_path, viewpoint_variation=0)
    found = replace(MINI, levels=RIGHT).read(tmp_path).coverage
    assert not found.partial
    assert "pairs by viewpoint_variation 1/0/3 of 1/0/3, " in str(found)
    assert str(found).endswith("are those that a third party's script tells")


@pytest.mark.parametrize("field", range(4))
def test_a_wrong_number_of_pairs_of_a_level_is_partial(tmp_path: Path, field: int) -> None:
    """Planted: one pair less of the first level and one more of the last, the sum as it should be."""
    write_leveled(tmp_path, viewpoint_variation=0)
    name, numbers = RIGHT[field]
    planted = (name, (numbers[0] - 1, *numbers[1:-1], numbers[-1] + 1))
    levels = (*RIGHT[:field], planted, *RIGHT[field + 1 :])
    found = inspect(tmp_path, replace(MINI, levels=levels))
    assert found.state is State.PARTIAL
    text = "/".join(map(str, numbers))
    assert f"pairs by {name} {text} of {'/'.join(map(str, planted[1]))}" in found.text


def test_pairs_without_levels_are_not_compared(tmp_path: Path) -> None:
    write_fake_spair(tmp_path)
    assert "pairs by" not in str(SPAIR_71K_TEST.read(tmp_path).coverage)
    write_leveled(tmp_path / "one", occlusion=...)  # of which none is known then
    assert "pairs by occlusion 0/3/0/0 of 8,166/1,806/1,806/456" in str(
        SPAIR_71K_TEST.read(tmp_path / "one").coverage
    )


def write_directions(folder: Path, *directions: object) -> None:
    """Annotations of the cats' images, with their ``azimuth_id``."""
    for path, one in zip(sorted((folder / "JPEGImages/cat").iterdir()), directions, strict=True):
        note = folder / "ImageAnnotation/cat" / f"{path.stem}.json"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"kps": {"0": [1, 1]}, "azimuth_id": one}))


@pytest.mark.parametrize(("second", "turn"), [*enumerate([0, 1, 2, 3, 4, 3, 2, 1])])
def test_turns_go_the_shorter_way_round(tmp_path: Path, second: int, turn: int) -> None:
    folder = write_fake_spair(tmp_path)
    write_directions(folder, 0, second, 7)
    other = min(abs(7 - second), 8 - abs(7 - second))  # of the second and the third cat
    assert [pair.turn for pair in MINI.read(tmp_path).pairs] == [turn, other, None, None]


@pytest.mark.parametrize("direction", [None, 8, -1, "2", True, 2.0])
def test_a_viewpoint_that_is_none_of_eight_is_not_known(tmp_path: Path, direction: object) -> None:
    folder = write_fake_spair(tmp_path)
    write_directions(folder, 1, 1, direction)
    assert [pair.turn for pair in MINI.read(tmp_path).pairs][:2] == [0, None]

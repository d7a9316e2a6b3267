import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layerboard.tasks.datasets.catalogue import State, inspect
from layerboard.tasks.datasets.spair import SPAIR_71K_TEST, SpairEntry
from layerboard.zoo.errors import InputError
from tests.fakes import write_fake_spair
from tests.tasks.datasets.helpers import copy_shuffled, keys

MINI = SpairEntry(pairs=4, categories=2)


def change(folder: Path, remove: str = "", **fields: Any) -> Path:
    """Replace fields of the first pair annotation."""
    path = sorted((folder / "PairAnnotation/test").iterdir())[0]
    content = {**json.loads(path.read_text()), **fields}
    content.pop(remove, None)
    path.write_text(json.dumps(content))
    return path


def test_layout(tmp_path: Path) -> None:
    write_fake_spair(tmp_path)
    dataset = MINI.read(tmp_path)
    assert str(dataset.coverage) == "4 of 4 pairs, 2 of 2 categories, 6 images, 12 keypoints"
    assert not dataset.coverage.partial
    pair = dataset.pairs[2]
    assert (pair.key, pair.category) == ("000003-2008_010000-2008_010001:dog", "dog")
    assert keys(dataset.samples)[pair.target] == "dog/2008_010001.jpg"
    assert (pair.source_size, pair.target_box) == ((50, 40), (2, 2, 48, 38))
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


def test_fewer_pairs_are_partial(tmp_path: Path) -> None:
    write_fake_spair(tmp_path)
    assert "4 of 12,234 pairs, 2 of 18 categories" in str(SPAIR_71K_TEST.read(tmp_path).coverage)


LEVELS = {"viewpoint_variation": 2, "scale_variation": 0, "truncation": 3, "occlusion": 1}


def write_leveled(root: Path, **first: int) -> Path:
    """Four pairs of the same levels, but for those of the first."""
    folder = write_fake_spair(root)
    for path in (folder / "PairAnnotation/test").iterdir():
        path.write_text(json.dumps({**json.loads(path.read_text()), **LEVELS}))
    change(folder, **first)
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
    folder = write_leveled(tmp_path / "one")
    change(folder, remove="occlusion")  # of which none is known then
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
    first, other = [pair.turn for pair in MINI.read(tmp_path).pairs][:2]
    assert (first, other) == (turn, min(abs(7 - second), 8 - abs(7 - second)))


def test_turns_are_those_of_the_images_of_a_pair(tmp_path: Path) -> None:
    folder = write_fake_spair(tmp_path)
    write_directions(folder, 1, 6, 2)
    assert [pair.turn for pair in MINI.read(tmp_path).pairs] == [3, 4, None, None]


@pytest.mark.parametrize("direction", [None, 8, -1, "2", True, 2.0])
def test_a_viewpoint_that_is_none_of_eight_is_not_known(tmp_path: Path, direction: object) -> None:
    folder = write_fake_spair(tmp_path)
    write_directions(folder, 1, 1, direction)
    assert [pair.turn for pair in MINI.read(tmp_path).pairs][:2] == [0, None]


def test_missing_image_names_pair_and_image(tmp_path: Path) -> None:
    folder = write_fake_spair(tmp_path)
    (folder / "JPEGImages/dog/2008_010001.jpg").unlink()
    with pytest.raises(InputError, match=r"image .*dog/2008_010001\.jpg of pair 000003-.*:dog, found none"):
        MINI.read(tmp_path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mirror": 1}, "mirror to be 0"),
        ({"mirror": "no"}, "'mirror' to be an integer"),
        ({"remove": "mirror"}, "expected field 'mirror' in"),
        ({"src_kps": [[1, 2]]}, "as many source as target keypoints .* found 1 and 3"),
        ({"src_kps": []}, "at least one keypoint in src_kps"),
        ({"trg_kps": [[1, 2], [3, None], [4, 5]]}, r"keypoints \(x, y\) as trg_kps .* found \[3, None\]"),
        ({"trg_kps": [[1, 2], [3], [4, 5]]}, r"keypoints \(x, y\)"),
        ({"src_imname": 3}, "'src_imname' to be text"),
        ({"src_imname": "../dog/a.jpg"}, "below the dataset's folder"),
        ({"trg_bndbox": [5, 5, 5, 9]}, "trg_bndbox .* x1 < x2"),
        ({"trg_bndbox": [5, 5]}, "'trg_bndbox' to be 4 numbers"),
        ({"src_imsize": [51, 40, 3]}, r"to be 51 x 40 pixels as .* says, found 50 x 40"),
        ({"category": "dog"}, "ends with :dog.json"),
    ],
)
def test_broken_pairs(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    change(write_fake_spair(tmp_path), **fields)
    with pytest.raises(InputError, match=message):
        MINI.read(tmp_path)


@pytest.mark.parametrize("place", [10**400, 1e300, 101, -51])
def test_keypoints_of_another_image(tmp_path: Path, place: float) -> None:
    change(write_fake_spair(tmp_path), trg_kps=[[1, 1], [2, place], [3, 3]])
    with pytest.raises(InputError, match=r"expected keypoints .*trg_kps of .*\.json, found"):
        MINI.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a" * 300 + ".jpg", "at most 255 bytes in"),
        ("\u732b" * 90 + ".jpg", "at most 255 bytes in"),
        ("a\0.jpg", "at most 255 bytes in"),
        ("\ud800.jpg", r"expected UTF-8 as names of files in .*, found '\\ud800\.jpg'"),
    ],
)
def test_names_that_no_file_has(tmp_path: Path, name: str, message: str) -> None:
    change(write_fake_spair(tmp_path), src_imname=name)
    with pytest.raises(InputError, match=message):
        MINI.read(tmp_path)


def test_one_image_in_two_sizes(tmp_path: Path) -> None:
    change(write_fake_spair(tmp_path), trg_imsize=[50, 41, 3], trg_imname="2008_000000.jpg")
    with pytest.raises(InputError, match=r"one size of image cat/2008_000000.jpg"):
        MINI.read(tmp_path)


def test_malformed_json_and_missing_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected spair-71k-test \(SPair-71k/PairAnnotation"):
        MINI.read(tmp_path)
    folder = write_fake_spair(tmp_path)
    path = change(folder)
    path.write_text(path.read_text()[:-5])
    with pytest.raises(InputError, match=r"expected JSON in .*000001-.*malformed .*; fetch it again"):
        MINI.read(tmp_path)
    for each in path.parent.iterdir():
        each.unlink()
    with pytest.raises(InputError, match=r"expected pair annotations \(\*\.json\)"):
        MINI.read(tmp_path)

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.zoo.errors import InputError, UnreadableImageError
from tests.fakes import write_fake_davis
from tests.tasks.datasets.helpers import keys
from workshop.render.masks import voc_palette, write_mask

MINI = DavisEntry(sequences=2, frames=8, objects=4)


def test_layout(tmp_path: Path) -> None:
    write_fake_davis(tmp_path)
    dataset = MINI.read(tmp_path)
    video = dataset.videos[0]
    assert (video.name, video.size) == ("sequence-0", (48, 32))
    assert keys(video.frames) == [f"sequence-0/{index:05d}" for index in range(4)]
    assert [path.name for path in video.masks] == [f"{index:05d}.png" for index in range(4)]
    assert {1, 2} <= {*read_mask(video.masks[0]).ravel().tolist()} <= {0, 1, 2, 255}


def test_a_sequence_without_a_frame_that_counts_is_named(tmp_path: Path) -> None:
    folder = write_fake_davis(tmp_path)
    for kind, ending in (("JPEGImages", "jpg"), ("Annotations", "png")):
        for frame in ("00002", "00003"):
            (folder / kind / "480p" / "sequence-1" / f"{frame}.{ending}").unlink()
    said = str(MINI.read(tmp_path).coverage)
    assert said.endswith("4 of 4 objects; 1 sequence of fewer than 3 frames not scored (sequence-1)")


def test_masks_go_round(tmp_path: Path) -> None:
    mask = np.random.default_rng(0).integers(0, 256, (7, 9)).astype(np.uint8)
    write_mask(tmp_path / "a.png", mask)
    np.testing.assert_array_equal(read_mask(tmp_path / "a.png"), mask)
    Image.fromarray(mask).save(tmp_path / "grey.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "grey.png"), mask)
    with Image.open(tmp_path / "a.png") as image:
        assert image.mode == "P"


def test_palette_is_that_of_voc() -> None:
    palette = voc_palette()
    assert palette[:5].tolist() == [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128]]
    assert palette[8].tolist() == [64, 0, 0]
    assert palette[255].tolist() == [224, 224, 192]
    assert len(np.unique(palette, axis=0)) == 256


def test_masks_in_colours_or_damaged(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4), "red").save(tmp_path / "rgb.png")
    with pytest.raises(InputError, match=r"object ids at .*rgb\.png, found mode RGB"):
        read_mask(tmp_path / "rgb.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "rgb.png").read_bytes()[:40])
    with pytest.raises(UnreadableImageError, match=r"cut\.png"):
        read_mask(tmp_path / "cut.png")

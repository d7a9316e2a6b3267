import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.datasets.reading.masks import read_mask, voc_palette, write_mask
from layerboard.zoo.errors import InputError, UnreadableImageError
from tests.fakes import write_fake_davis
from tests.tasks.datasets.helpers import copy_shuffled, keys

MINI = DavisEntry(sequences=2, frames=8, objects=4)


def test_layout(tmp_path: Path) -> None:
    write_fake_davis(tmp_path)
    dataset = MINI.read(tmp_path)
    assert str(dataset.coverage) == "2 of 2 sequences, 8 of 8 frames, 4 of 4 objects"
    assert not dataset.coverage.partial
    video = dataset.videos[0]
    assert (video.name, video.size) == ("sequence-0", (48, 32))
    assert keys(video.frames) == [f"sequence-0/{index:05d}" for index in range(4)]
    assert [path.name for path in video.masks] == [f"{index:05d}.png" for index in range(4)]
    assert {1, 2} <= {*read_mask(video.masks[0]).ravel().tolist()} <= {0, 1, 2, 255}


def test_order_of_files_and_lines_does_not_matter(tmp_path: Path) -> None:
    write_fake_davis(tmp_path / "a", sequences=4, frames=11)
    copy_shuffled(tmp_path / "a", tmp_path / "b")
    subset = tmp_path / "b/DAVIS/ImageSets/2017/val.txt"
    subset.write_text("\r\n".join(["", *subset.read_text().split()[::-1]]))
    first, second = (MINI.read(tmp_path / name).videos for name in "ab")
    assert [keys(video.frames) for video in first] == [keys(video.frames) for video in second]


def test_missing_sequence_is_partial(tmp_path: Path) -> None:
    folder = write_fake_davis(tmp_path)
    shutil.rmtree(folder / "JPEGImages/480p/sequence-1")
    dataset = MINI.read(tmp_path)
    assert str(dataset.coverage) == "1 of 2 sequences, 4 of 4 frames, 2 of 4 objects".replace(
        "4 of 4", "4 of 8"
    )
    shutil.rmtree(folder / "JPEGImages/480p/sequence-0")
    with pytest.raises(InputError, match=r"folders of the sequences sequence-0, sequence-1 in .* found none"):
        MINI.read(tmp_path)


def test_a_sequence_without_a_frame_that_counts_is_named(tmp_path: Path) -> None:
    folder = write_fake_davis(tmp_path)
    for kind, ending in (("JPEGImages", "jpg"), ("Annotations", "png")):
        for frame in ("00002", "00003"):
            (folder / kind / "480p" / "sequence-1" / f"{frame}.{ending}").unlink()
    said = str(MINI.read(tmp_path).coverage)
    assert said.endswith("4 of 4 objects; 1 sequence of fewer than 3 frames not scored (sequence-1)")


def test_frame_without_mask_and_mask_without_frame(tmp_path: Path) -> None:
    folder = write_fake_davis(tmp_path)
    (folder / "JPEGImages/480p/sequence-1/00003.jpg").unlink()
    with pytest.raises(InputError, match=r"a frame for every mask of .*sequence-1.* found none for 00003"):
        MINI.read(tmp_path)
    (folder / "Annotations/480p/sequence-0/00002.png").unlink()
    with pytest.raises(InputError, match=r"a mask for every frame of .*sequence-0.* found none for 00002"):
        MINI.read(tmp_path)
    shutil.rmtree(folder / "Annotations/480p/sequence-0")
    with pytest.raises(InputError, match=r"a folder of masks at .*sequence-0"):
        MINI.read(tmp_path)


def test_mask_of_another_size(tmp_path: Path) -> None:
    path = write_fake_davis(tmp_path) / "Annotations/480p/sequence-1/00002.png"
    write_mask(path, np.ones((30, 48), np.uint8))
    with pytest.raises(
        InputError, match=r"48 x 32 as its first frame, found 48 x 30 in .*sequence-1/00002\.png"
    ):
        MINI.read(tmp_path)


def test_first_mask_without_objects(tmp_path: Path) -> None:
    path = write_fake_davis(tmp_path) / "Annotations/480p/sequence-0/00000.png"
    write_mask(path, np.full((32, 48), 255, np.uint8))
    with pytest.raises(InputError, match=r"at least one object in the first mask .*00000\.png"):
        MINI.read(tmp_path)


def test_missing_folders_and_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected davis-2017-val \(DAVIS/ImageSets"):
        MINI.read(tmp_path)
    folder = write_fake_davis(tmp_path)
    (folder / "ImageSets/2017/val.txt").write_text("a\na\n")
    with pytest.raises(InputError, match="one sequence a line"):
        MINI.read(tmp_path)
    (folder / "ImageSets/2017/val.txt").unlink()
    with pytest.raises(InputError, match=r"a list of sequences at .*val\.txt"):
        MINI.read(tmp_path)
    shutil.rmtree(folder / "Annotations")
    with pytest.raises(InputError, match="expected the masks of davis-2017-val"):
        MINI.read(tmp_path)


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
    Image.new("RGB", (4, 4)).save(tmp_path / "rgb.png")
    with pytest.raises(InputError, match=r"object ids at .*rgb\.png, found mode RGB"):
        read_mask(tmp_path / "rgb.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "rgb.png").read_bytes()[:40])
    with pytest.raises(UnreadableImageError, match=r"cut\.png"):
        read_mask(tmp_path / "cut.png")

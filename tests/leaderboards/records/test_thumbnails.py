"""Small pictures: small whatever the image, named by their bytes, and damage is found."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.leaderboards.records.arrays import read_arrays, write_arrays
from layerboard.leaderboards.records.thumbnails import (
    LARGEST,
    encoded,
    is_whole,
    named_thumbnails,
    remove_thumbnails,
    thumbnails_of,
    write_thumbnail,
)
from layerboard.tasks.framework.examples import SIDE


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize("size", [(96, 96), (640, 480), (3, 900), (20, 10)])
def test_any_image_becomes_small(size: tuple[int, int]) -> None:
    content = encoded(noise(*size))
    assert len(content) <= LARGEST
    with Image.open(BytesIO(content)) as image:
        assert image.format == "WEBP"
        assert max(image.size) <= SIDE


def test_one_picture_has_one_file_named_by_its_bytes(tmp_path: Path) -> None:
    name = write_thumbnail(noise(50, 40), tmp_path / "thumbnails")
    before = (tmp_path / "thumbnails" / name).stat().st_mtime_ns
    assert write_thumbnail(noise(50, 40), tmp_path / "thumbnails") == name
    assert [path.name for path in (tmp_path / "thumbnails").iterdir()] == [name]
    assert (tmp_path / "thumbnails" / name).stat().st_mtime_ns == before


def test_damage_is_found_and_mended(tmp_path: Path) -> None:
    path = tmp_path / write_thumbnail(noise(50, 40), tmp_path)
    assert is_whole(path)
    path.write_bytes(path.read_bytes()[:-3])
    assert not is_whole(path)
    assert write_thumbnail(noise(50, 40), tmp_path) == path.name
    assert is_whole(path)
    path.unlink()
    assert not is_whole(path)


def test_a_file_of_examples_names_pictures_of_its_own_folder_only(tmp_path: Path) -> None:
    path = tmp_path / "knn.npz"
    write_arrays({"thumbnail": np.array(["a.webp", "", "b.webp"])}, path)
    assert thumbnails_of(path) == ["a.webp", "b.webp"]
    write_arrays({"thumbnail": np.array(["../../secret"])}, path)
    with pytest.raises(ValueError, match="outside of thumbnails"):
        thumbnails_of(path)


def test_only_pictures_that_examples_named_and_whose_names_are_their_digests_are_removed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "thumbnails"
    ours, needed, unnamed = (write_thumbnail(noise(50, side), folder) for side in (40, 41, 42))
    (folder / "photo.webp").write_bytes(b"the user's own")
    examples = [tmp_path / "examples" / name for name in ("knn.npz", "spair.npz")]
    write_arrays({"thumbnail": np.array([ours, needed, "photo.webp"])}, examples[0])
    write_arrays({"thumbnail": np.array([needed])}, examples[1])
    former = named_thumbnails(tmp_path)
    examples[0].unlink()
    remove_thumbnails(tmp_path, former)
    assert {path.name for path in folder.iterdir()} == {needed, unnamed, "photo.webp"}


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut"])
def test_what_is_no_archive_of_arrays_is_said_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "arrays.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="arrays"):
        read_arrays(path)


def test_an_array_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    write_arrays({"layer": np.arange(3)}, tmp_path / "arrays.npz")
    assert read_arrays(tmp_path / "arrays.npz")["layer"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="expected arrays"):
        read_arrays(tmp_path / "arrays.npz", ("thumbnail",))

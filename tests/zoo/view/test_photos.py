"""Images as cameras and editors write them, through what users call: a folder, a table of the Hub, `load`."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import ExifTags, Image, ImageOps, PngImagePlugin

import layerboard
from layerboard.tasks.datasets.catalogue import State, inspect_images
from layerboard.tasks.datasets.folder import read_folder
from layerboard.tasks.datasets.hub import TableSample
from layerboard.tasks.datasets.reading.files import image_size
from layerboard.zoo.errors import InputError, UnreadableImageError
from layerboard.zoo.view import photos
from tests.fakes import fake_image

SCRIPTS = {"EPS", "WMF", "IPTC", "BUFR", "GRIB", "HDF5", "MPEG"}
"""Formats of Pillow that are programs or vectors, hold files of any format, or that it cannot decode."""


@pytest.fixture
def picture() -> Image.Image:
    return fake_image(1, (40, 32), np.random.default_rng(0))[0]


def own(path: Path) -> Image.Image:
    """The one image of a folder, as a run reads it, which is what a table of the Hub gives, too."""
    data = read_folder(path.parent)
    (sample,) = data.samples  # type: ignore[union-attr]
    table = TableSample("a", 0, "image", "", [{"image": {"bytes": path.read_bytes()}}])
    assert table.open().tobytes() == sample.open().tobytes()
    return sample.open()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_photos_are_turned_as_their_camera_says(
    tmp_path: Path, picture: Image.Image, kind: str, orientation: int
) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    picture.save(tmp_path / "a.jpg", format=kind, exif=exif)
    with Image.open(tmp_path / "a.jpg") as opened:
        upright = ImageOps.exif_transpose(opened)
    assert upright.size == ((40, 32) if orientation < 5 else (32, 40))
    assert own(tmp_path / "a.jpg").tobytes() == upright.tobytes()


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_damaged_exif_is_none(tmp_path: Path, picture: Image.Image) -> None:
    picture.save(tmp_path / "a.jpg", exif=b"Exif\0\0II*\0\xff\xff\xff\xff\x09")
    assert own(tmp_path / "a.jpg").size == (40, 32)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM", "JPEG2000"])
def test_sixteen_bits_of_grey_are_scaled(tmp_path: Path, kind: str) -> None:
    grey = np.arange(256, dtype=np.uint16).reshape(16, 16)
    Image.fromarray(grey * 257).save(tmp_path / "a.png", format=kind)
    np.testing.assert_array_equal(np.asarray(own(tmp_path / "a.png")), np.stack([grey] * 3, axis=-1))


@pytest.mark.parametrize("values", [np.float32([[0, 0.5]]), np.int32([[0, 70_000]]), np.int32([[-1, 0]])])
def test_pixels_of_no_known_range_are_left_out_with_the_reason(tmp_path: Path, values: np.ndarray) -> None:
    Image.fromarray(values).save(tmp_path / "a.tif")
    with pytest.raises(UnreadableImageError, match=r"image a: expected pixels of 8 or 16 bits, found"):
        own(tmp_path / "a.tif")


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_transparent_parts_show_white(tmp_path: Path, mode: str) -> None:
    if mode in ("RGBA", "LA"):
        image = Image.new("RGBA", (2, 1), (0, 0, 0, 0)).convert(mode)
        image.putpixel((1, 0), (0, 0, 0, 255) if mode == "RGBA" else (0, 255))
        image.save(tmp_path / "a.png")
    else:
        image = Image.new(mode, (2, 1), 0)
        image.putpixel((1, 0), (1, 1, 1) if mode == "RGB" else 1)
        image.save(tmp_path / "a.png", transparency=(0, 0, 0) if mode == "RGB" else 0)
    seen = own(tmp_path / "a.png")
    assert seen.getpixel((0, 0)) == (255, 255, 255)
    assert max(seen.getpixel((1, 0))) <= 1  # type: ignore[type-var,arg-type]


def test_formats_are_all_of_pillow_but_scripts_vectors_and_what_it_cannot_decode() -> None:
    assert {*photos.formats()} == {*Image.OPEN} - SCRIPTS
    assert {".jpg", ".jfif", ".jpe", ".tif", ".tiff", ".gif", ".avif", ".mpo"} <= {*photos.endings()}
    assert not {".eps", ".ps", ".pdf", ".wmf", ".svg", ".txt", ".csv"} & {*photos.endings()}


def test_load_takes_paths_and_turns_photos(tmp_path: Path, picture: Image.Image) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    picture.save(tmp_path / "photo.png", exif=exif)
    encode = layerboard.load("mini-fs", layer=1, device="cpu")
    expected = encode(picture.transpose(Image.Transpose.ROTATE_270))
    for images in (tmp_path / "photo.png", str(tmp_path / "photo.png"), Image.open(tmp_path / "photo.png")):
        assert encode(images).equal(expected)
    assert encode([tmp_path / "photo.png", picture]).shape == (2, encode.dim)
    with pytest.raises(InputError, match=r"cannot decode image gone\.jpg: No such file or directory"):
        encode("gone.jpg")


def test_an_image_of_very_many_pixels_is_refused_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("1", (13_000, 13_000)).save(tmp_path / "a.png")
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", lambda image: pytest.fail("decoded"))
    encode = layerboard.load("mini-fs", layer=1, device="cpu")
    readers = (lambda: own(tmp_path / "a.png"), lambda: image_size(tmp_path / "a.png"))
    for read in (*readers, lambda: encode(tmp_path / "a.png")):
        with pytest.raises(
            InputError, match="it has 169,000,000 pixels, of at most 134,217,728; make it smaller"
        ):
            read()


def photos_folder(folder: Path, picture: Image.Image, *names: str) -> Path:
    folder.mkdir()
    for name in ("a.jfif", "b.GIF", "c.tiff"):
        picture.save(folder / name, format="PNG")
    for name in names:
        (folder / name).write_bytes(b"no image")
    return folder


@pytest.mark.usefixtures("without_heic")
def test_what_is_left_out_is_counted_by_ending(tmp_path: Path, picture: Image.Image) -> None:
    names = ("1.heic", "2.HEIC", "1.mov", "2.mov", "3.Mov", "1.eps", "README")
    found = inspect_images(str(photos_folder(tmp_path / "photos", picture, *names)))
    assert found.state is State.PARTIAL
    assert "3 images" in found.text
    assert "2 images left out (2 .heic): to have them read, pip install 'layerboard[heic]'" in found.text
    assert "5 other files ignored (3 .mov, 1 without an ending, 1 .eps)" in found.text


@pytest.mark.usefixtures("without_heic")
def test_heic_is_read_where_its_plug_in_is_installed(
    tmp_path: Path, picture: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    def register() -> None:  # as the plug-in does, here with the reader of PNG
        Image.register_open("HEIF", PngImagePlugin.PngImageFile)
        Image.register_extension("HEIF", ".heic")

    monkeypatch.setitem(sys.modules, "pillow_heif", SimpleNamespace(register_heif_opener=register))
    folder = photos_folder(tmp_path / "photos", picture)
    picture.save(folder / "d.HEIC", format="PNG")
    found = inspect_images(str(folder))
    assert (found.state, found.text[:8]) == (State.COMPLETE, "4 images")
    assert "HEIF" in photos.formats()

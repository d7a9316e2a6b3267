"""Masks say the same in every form in which programs save them, or are refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.reading.masks import read_mask, read_region
from layerboard.zoo.errors import InputError, UnreadableImageError
from workshop.render.masks import voc_palette, write_mask

IDS = np.zeros((40, 60), np.uint8)
IDS[10:20, 20:40] = 1
GREY = Image.fromarray(255 * IDS)
WHITE, BLACK = (Image.new("L", GREY.size, value) for value in (255, 0))
NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8))


def palette(ids: np.ndarray, *colours: int) -> Image.Image:
    image = Image.fromarray(ids).convert("P")
    image.putpalette(colours)
    return image


REGIONS = {
    "white": GREY,
    "ids": Image.fromarray(IDS),
    "one bit": GREY.convert("1"),
    "16 bits": Image.fromarray(IDS.astype(np.uint16) * 257),
    "red": Image.merge("RGB", (GREY, BLACK, BLACK)),
    "opaque": GREY.convert("RGBA"),
    "palette": palette(IDS, *voc_palette().ravel().tolist()),
    "palette that begins with the marked colour": palette(1 - IDS, 255, 255, 255, 0, 0, 0),
    "palette of one colour": palette(IDS, 0, 0, 0, 0, 0, 0),
    "white on nothing": Image.merge("RGBA", (WHITE, WHITE, WHITE, GREY)),
    "black on nothing": Image.merge("LA", (BLACK, GREY)),
    "white on nothing, black below": Image.merge("RGBA", (GREY, GREY, GREY, GREY)),
    "a part of a photograph": Image.merge("RGBA", (*NOISE.split(), GREY)),
    "black and white inside of an outline": Image.merge(
        "LA", (GREY, Image.fromarray(np.uint8(255 * (np.indices((40, 60))[1] > 9))))
    ),
}


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("ending", ["png", "tif"])
def test_a_region_is_what_is_marked(tmp_path: Path, name: str, ending: str) -> None:
    REGIONS[name].save(path := tmp_path / f"mask.{ending}")
    assert np.array_equal(read_region(path), IDS == 1)


def test_a_mask_that_its_transparency_hides_is_refused(tmp_path: Path) -> None:
    Image.merge("LA", (GREY, Image.fromarray(255 - 255 * IDS))).save(path := tmp_path / "mask.png")
    with pytest.raises(InputError, match="without transparency"):
        read_region(path)


@pytest.mark.parametrize("mode", ["L", "RGBA", "LA"])
def test_an_empty_layer_marks_nothing(tmp_path: Path, mode: str) -> None:
    channels = {"L": [BLACK], "RGBA": [WHITE, WHITE, WHITE, BLACK], "LA": [WHITE, BLACK]}[mode]
    Image.merge(mode, channels).save(path := tmp_path / "mask.png")
    assert not read_region(path).any()


def test_a_lossy_file_is_read_at_half_of_white_and_a_dark_one_refused(tmp_path: Path) -> None:
    GREY.save(path := tmp_path / "mask.jpg", quality=60)
    assert np.array_equal(read_region(path), IDS == 1)
    Image.fromarray(60 * IDS).save(path)
    with pytest.raises(InputError, match=r"black and white .* save it as PNG"):
        read_region(path)


@pytest.mark.parametrize(
    ("name", "most"), [("white", 255), ("ids", 1), ("one bit", 1), ("opaque", 255), ("palette", 1)]
)
def test_ids_are_values_or_indices_of_a_palette(tmp_path: Path, name: str, most: int) -> None:
    REGIONS[name].save(path := tmp_path / "mask.png")
    assert np.array_equal(read_mask(path), most * IDS)


def _jpeg(path: Path) -> None:
    GREY.save(path, "jpeg")


@pytest.mark.parametrize(
    "save",
    [_jpeg, *(REGIONS[name].save for name in ("red", "16 bits", "white on nothing", "black on nothing"))],
)
def test_what_holds_no_ids_is_refused(tmp_path: Path, save: Callable[[Path], None]) -> None:
    save(path := tmp_path / "mask.png")
    with pytest.raises(InputError, match="whose pixel values are object ids"):
        read_mask(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).integers(0, 256, (7, 9)).astype(np.uint8)
    write_mask(path := tmp_path / "mask.png", ids)
    assert np.array_equal(read_mask(path), ids)
    with Image.open(path) as image:
        assert image.mode == "P"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UnreadableImageError, match=r"mask\.png"):
        read_mask(path)


def test_palette_is_that_of_voc() -> None:
    palette = voc_palette()
    assert palette[:5].tolist() == [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128]]
    assert palette[8].tolist() == [64, 0, 0]
    assert palette[255].tolist() == [224, 224, 192]
    assert len(np.unique(palette, axis=0)) == 256

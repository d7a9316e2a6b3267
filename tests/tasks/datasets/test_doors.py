"""Ten images through every entrance: the same pixels, and one digest of data."""

import shutil
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import Dataset

from layerboard.benchmark.commands.encoder import LayerEncoder
from layerboard.benchmark.commands.load import load
from layerboard.benchmark.engines.progress import Terminal
from layerboard.benchmark.look import pictures_of
from layerboard.tasks.datasets.base import Data, images_of
from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.facts import BLANK
from layerboard.tasks.datasets.reading.archives import unpacked
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.tasks.datasets.reading.memory import stored
from layerboard.tasks.framework.identity import own_name
from layerboard.zoo.view.pixels import pixels

SIZE = (40, 28)
CLASSES = ("a", "b")


def drawn(seed: int, *channels: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (*SIZE[::-1], *channels), np.uint8)


def write_images(folder: Path) -> list[Path]:
    """Ten files, each of another kind."""
    folder.mkdir(parents=True)
    turned = Image.Exif()
    turned[0x112] = 6
    colour, grey = Image.fromarray(drawn(0, 3)), Image.fromarray(drawn(1))
    alpha, palette = Image.fromarray(drawn(2, 4)), Image.fromarray(drawn(3, 3)).quantize(16)
    deep = Image.fromarray(np.random.default_rng(4).integers(0, 4096, SIZE[::-1], np.uint16))
    frames = [Image.fromarray(drawn(seed, 3)).quantize(32) for seed in (5, 6)]
    writers: Mapping[str, Callable[[Path], None]] = {
        "turned.jpg": lambda path: colour.save(path, exif=turned),
        "alpha.png": alpha.save,
        "deep.png": deep.save,
        "cmyk.jpg": Image.fromarray(drawn(7, 4), "CMYK").save,
        "palette.png": lambda path: palette.save(path, transparency=3),
        "bits.png": grey.convert("1").save,
        "grey-alpha.png": alpha.convert("LA").save,
        "moving.gif": lambda path: frames[0].save(path, save_all=True, append_images=frames[1:]),
        "web.webp": lambda path: Image.fromarray(drawn(8, 3)).save(path, quality=80),
        "plain.png": Image.new("RGB", SIZE, "teal").save,
    }
    for name, write in writers.items():
        write(folder / name)
    return [folder / name for name in writers]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_images(tmp_path_factory.mktemp("doors") / "files")


def decoded(path: Path) -> Image.Image:
    with Image.open(path) as image:
        image.load()
        return image.copy()


def undecoded(path: Path) -> Image.Image:
    return Image.open(BytesIO(path.read_bytes()))


SINGLE: dict[str, Callable[[Path], object]] = {
    "text": str,
    "numpy's text": lambda path: np.array([str(path)])[0],
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "buffer": lambda path: BytesIO(path.read_bytes()),
    "mapping of bytes": lambda path: {"bytes": path.read_bytes(), "path": None},
    "mapping of a path": lambda path: {"bytes": None, "path": str(path)},
    "lazy Pillow": undecoded,
    "Pillow": decoded,
    "array": lambda path: np.asarray(pixels(path)),
}


@pytest.mark.parametrize("door", SINGLE.values(), ids=SINGLE)
def test_an_image_has_the_same_pixels_whatever_it_comes_in(
    files: list[Path], door: Callable[[Path], object]
) -> None:
    for path in files:
        assert pixels(path).mode == "RGB"
        np.testing.assert_array_equal(np.asarray(pixels(door(path))), np.asarray(pixels(path)))
    (shown,) = pictures_of([files[0]], 1, Terminal())
    assert shown.image.size == pixels(files[0]).size == SIZE[::-1]


def test_encoders_show_a_network_those_pixels(files: list[Path]) -> None:
    encode, encoder = load("mini-resnet", layer=1), LayerEncoder("mini-resnet", 1)
    preprocess: Any = encode.preprocess
    expected = [preprocess(pixels(path)).numpy() for path in files]
    vectors = encode([pixels(files[0])]).numpy()
    for name, door in SINGLE.items():
        shown = [preprocess(door(path)).numpy() for path in files]
        np.testing.assert_array_equal(shown, expected, err_msg=name)
        np.testing.assert_array_equal(encoder.transform([door(files[0])]), vectors, err_msg=name)


class Pairs(Dataset[Any]):
    def __init__(self, rows: list[tuple[Any, int]]) -> None:
        self.rows, self.classes = rows, CLASSES

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.rows[index]


def doors(files: list[Path], place: Path) -> dict[str, Callable[[], Data]]:
    """The same ten labelled images as datasets of every kind, in several orders and under other names."""
    rows = [(path, number % 2) for number, path in enumerate(files)]
    for number, (path, label) in enumerate(rows):
        for target in (
            place / "folder" / CLASSES[label] / path.name,
            place / "flat" / f"{9 - number}{path.suffix}",
        ):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    lines = [f"{9 - number}{path.suffix},{CLASSES[label]}" for number, (path, label) in enumerate(rows)]
    (place / "labels.csv").write_text("\n".join(["file,label", *lines]))
    kinds = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=[*CLASSES])})
    encoded = [{"bytes": path.read_bytes(), "path": None} for path, _ in rows]
    table = datasets.Dataset.from_dict({"image": encoded, "label": [label for _, label in rows]}, kinds)
    table.save_to_disk(place / "saved")
    cache = place / "cache"

    def in_memory(images: object) -> Data:
        return read_own(str(stored(images, cache)))

    def of(make: Callable[[Path], object]) -> list[tuple[object, str]]:
        return [(make(path), CLASSES[label]) for path, label in rows]

    return {
        "class folders": lambda: read_own(str(place / "folder")),
        "table": lambda: read_own(str(place / "flat"), Labelling(place / "labels.csv")),
        "zip": lambda: read_own(
            unpacked(shutil.make_archive(str(place / "z"), "zip", place / "folder"), cache)
        ),
        "saved by datasets": lambda: read_own(f"hf:{place / 'saved'}"),
        "datasets": lambda: in_memory(table),
        "datasets for numpy": lambda: in_memory(table.with_format("numpy")),
        "paths": lambda: in_memory(of(str)),
        "bytes, backwards": lambda: in_memory(of(Path.read_bytes)[::-1]),
        "Pillow": lambda: in_memory(of(decoded)),
        "lazy Pillow": lambda: in_memory(of(undecoded)),
        "torch": lambda: in_memory(Pairs([(undecoded(path), label) for path, label in rows])),
    }


def test_ten_labelled_images_have_one_digest_whatever_the_door(files: list[Path], tmp_path: Path) -> None:
    found = {name: door() for name, door in doors(files, tmp_path).items()}
    digests = {name: own_name(data).rpartition("-")[2] for name, data in found.items()}
    assert len({*digests.values()}) == 1, digests
    expected = sorted(pixels(path).tobytes() for path in files)
    for name, data in found.items():
        assert sorted(sample.open().tobytes() for sample in images_of(data)) == expected, name
        assert any(f"1 image {BLANK}" in remark for remark in data.coverage.remarks), name
    shutil.copyfile(files[1], tmp_path / "folder" / "a" / files[0].name)
    assert own_name(read_own(str(tmp_path / "folder"))).rpartition("-")[2] not in digests.values()

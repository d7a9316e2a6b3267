"""Values of 8 to 15 bits in files of 16 or 32."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import layerboard
from layerboard.tasks.datasets import facts
from layerboard.tasks.datasets.base import PhotoSample, images_of
from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.facts import with_facts
from layerboard.tasks.datasets.hub import TableSample
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.tasks.framework.identity import own_name
from layerboard.zoo.view.photos import as_seen, bits_used, open_file
from tests.fakes import write_deep_image, write_fake_class_folders, write_fake_defects

FILES = [
    *(("PNG", channels) for channels in (1, 2, 3, 4)),
    *((f"{order}{how}", channels) for order in "<>" for how in ("raw", "deflate") for channels in (1, 3, 4)),
]


def drawn(bits: int, channels: int = 1, seed: int = 0) -> np.ndarray:
    """Random values of which the largest uses so many bits; alpha is opaque."""
    values = np.random.default_rng(seed).integers(0, 2**bits, (9, 7, channels))
    values[0, 0] = 2**bits - 1
    if channels in (2, 4):
        values[..., -1] = 2**16 - 1
    return values


def expected(values: np.ndarray, bits: int) -> np.ndarray:
    """The picture of opaque values."""
    colours = values[..., :1] if values.shape[2] < 3 else values[..., :3]
    return np.broadcast_to(colours >> (bits - 8), (*values.shape[:2], 3)).astype(np.uint8)


@pytest.mark.parametrize(("kind", "channels"), FILES)
def test_values_are_scaled_from_the_bits_that_they_use(tmp_path: Path, channels: int, kind: str) -> None:
    for bits in (8, 9, 12, 14, 16):
        values = drawn(bits, channels)
        path = write_deep_image(tmp_path / f"{bits}.png", values, kind)
        with open_file(path) as image:
            assert bits_used(image) == bits
        with open_file(path) as image:
            np.testing.assert_array_equal(np.asarray(as_seen(image)), expected(values, bits))
        if bits < 12:
            with open_file(path) as image:
                np.testing.assert_array_equal(np.asarray(as_seen(image, 12)), expected(values, 12))


def classes(root: Path, bits: dict[str, int], kind: str = "PNG", channels: int = 1) -> Path:
    """Three images of each class folder, of so many bits."""
    for name, most in bits.items():
        for seed in range(3):
            write_deep_image(root / name / f"{seed}.png", drawn(most, channels, seed), kind)
    return root


@pytest.mark.parametrize("channels", [1, 3])
def test_one_range_for_train_and_val_that_is_said_and_part_of_the_identity(
    tmp_path: Path, channels: int
) -> None:
    bits = {"train/a": 10, "train/b": 10, "val/a": 12, "val/b": 11}
    root = classes(tmp_path / "in", bits, channels=channels)
    data = read_own(str(root))
    assert {sample.bits for sample in images_of(data) if isinstance(sample, PhotoSample)} == {12}
    said = "12 images of more than 8 bits a channel: values use 12 bits, scaled to 8, white is 4,095"
    assert said in data.coverage.remarks
    for sample in images_of(data):
        values = drawn(bits[sample.key.rpartition("/")[0]], channels, int(sample.key[-5]))
        np.testing.assert_array_equal(np.asarray(sample.open()), expected(values, 12))
    former = {sample.key: sample.signature() for sample in images_of(data)}
    name = own_name(data)
    write_deep_image(root / "val" / "b" / "3.png", drawn(13, channels))
    grown = read_own(str(root))
    assert all(sample.signature() != former.get(sample.key) for sample in images_of(grown))
    (root / "val" / "b" / "3.png").unlink()
    assert own_name(read_own(str(root))) == name


def test_eight_bits_in_wide_files_are_read_as_they_are(tmp_path: Path) -> None:
    values = drawn(8)[..., 0]
    for number in range(3):
        for name in ("a", "b"):
            (tmp_path / "in" / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(values.astype(np.int32)).save(tmp_path / "in" / name / f"wide-{number}.tif")
            Image.fromarray(values.astype(np.uint8)).save(tmp_path / "in" / name / f"{number}.png")
    data = read_own(str(tmp_path / "in"))
    assert any(
        "6 images of more than 8 bits a channel: values use 8 bits, read" in r for r in data.coverage.remarks
    )
    assert len({sample.open().tobytes() for sample in images_of(data)}) == 1


def test_images_far_below_the_range_of_the_others_are_said(tmp_path: Path) -> None:
    data = read_own(str(classes(tmp_path / "in", {"a": 16, "b": 12, "c": 13})))
    assert data.coverage.partial
    said = "3 images of these nearly black, of 12 bits at most (b/0.png, b/1.png, b/2.png)"
    assert data.coverage.notes == (said,)


def test_images_of_all_sixteen_bits_keep_their_identity(tmp_path: Path) -> None:
    data = read_own(str(classes(tmp_path / "in", {"a": 16, "b": 16})))
    assert not any("bits" in sample.signature().replace("as seen", "") for sample in images_of(data))


def test_rows_of_the_hub_have_one_range_too(tmp_path: Path) -> None:
    files = [write_deep_image(tmp_path / f"{bits}.png", drawn(bits)).read_bytes() for bits in (12, 10, 8)]
    table = [{"image": {"bytes": content}} for content in files]
    root = classes(tmp_path / "in", {"a": 16, "b": 16})
    data = read_own(str(root), Labelling(Path("none")))
    rows = tuple(TableSample(f"train/{row}", row, "image", "", table) for row in range(3))
    found = with_facts(layerboard.tasks.datasets.classes.Unlabelled("hub", rows, data.coverage))
    for sample, bits in zip(found.samples, (12, 10, 8), strict=True):
        np.testing.assert_array_equal(np.asarray(sample.open()), expected(drawn(bits), 12))
        assert "|12 bits" in sample.signature()


def test_facts_are_kept_by_the_bytes_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file replaced under its name, size and time is another image; one that is copied is decoded once."""
    paths = [tmp_path / "in" / name / f"{number}.bmp" for name in "ab" for number in range(3)]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(drawn(8, 3, number).astype(np.uint8)).save(path)
    decoded, read = list[bytes](), facts._facts
    monkeypatch.setattr(facts, "_facts", lambda content: decoded.append(content) or read(content))
    first = read_own(str(tmp_path / "in"), cache=tmp_path / "cache")
    (tmp_path / "in").rename(tmp_path / "moved")
    moved = read_own(str(tmp_path / "moved"), cache=tmp_path / "cache")
    assert len(decoded) == len(paths)
    assert own_name(moved).rpartition("-")[2] == own_name(first).rpartition("-")[2]
    path = tmp_path / "moved" / "a" / "0.bmp"
    before = path.stat()
    Image.fromarray(drawn(8, 3, 9).astype(np.uint8)).save(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    replaced = read_own(str(tmp_path / "moved"), cache=tmp_path / "cache")
    assert len(decoded) == len(paths) + 1
    assert own_name(replaced) != own_name(moved)
    signatures = [{sample.signature() for sample in images_of(data)} for data in (moved, replaced)]
    assert len(signatures[0] - signatures[1]) == 1


def test_what_is_lost_on_white_is_said(tmp_path: Path) -> None:
    """White on nothing; black on nothing is seen."""
    for name, grey in (("a", 255), ("b", 0)):
        for number in range(3):
            values = np.full((9, 7, 4), grey, np.uint8)
            values[..., 3] = 255 * (np.arange(7) > number)
            (tmp_path / "in" / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(values).save(tmp_path / "in" / name / f"{number}.png")
    (note,) = read_own(str(tmp_path / "in")).coverage.notes
    assert note.startswith("3 images of one colour once transparent pixels are white (a/0.png, a/1.png,")


def test_a_single_picture_is_read_alike_alone_and_among_others(tmp_path: Path) -> None:
    encode = layerboard.load("mini-resnet", layer=1, device="cpu")
    deep = write_deep_image(tmp_path / "deep.png", np.repeat(np.repeat(drawn(12), 8, 0), 8, 1))
    plain = tmp_path / "plain.png"
    Image.fromarray(expected(np.repeat(np.repeat(drawn(12), 8, 0), 8, 1), 12)).save(plain)
    other = write_deep_image(tmp_path / "other.png", np.repeat(np.repeat(drawn(16), 8, 0), 8, 1))
    alone = encode(deep)
    np.testing.assert_allclose(alone[0].cpu(), encode([other, deep])[1].cpu(), atol=1e-5)
    np.testing.assert_allclose(alone[0].cpu(), encode(plain)[0].cpu(), atol=1e-5)


def test_images_of_train_in_val_are_said(tmp_path: Path) -> None:
    for seed, split in enumerate(("train", "val")):
        write_fake_class_folders(tmp_path / "in" / split, classes=2, images=3, seed=seed)
    assert not read_own(str(tmp_path / "in")).coverage.partial
    with Image.open(tmp_path / "in/train/n00000001/n00000001_2.JPEG") as image:
        image.save(tmp_path / "in/val/n00000002/other.png")  # other bytes, the same pixels
    (note,) = read_own(str(tmp_path / "in")).coverage.notes
    pair = "val/n00000002/other.png and train/n00000001/n00000001_2.JPEG"
    assert note == f"pixels of 1 of 7 val images are in train, too ({pair})"
    shutil.rmtree(tmp_path / "in/val")
    shutil.copytree(tmp_path / "in/train", tmp_path / "in/val")
    (note,) = read_own(str(tmp_path / "in")).coverage.notes
    assert note.startswith("pixels of 6 of 6 val images are in train, too (")
    assert note.endswith(" and 4 more)")
    rows = [
        f"{split}/n0000000{n}/n0000000{n}_{i}" for split in ("train", "val") for n in (1, 2) for i in range(3)
    ]
    table = tmp_path / "ages.csv"
    table.write_text("file,age\n" + "".join(f"{row},{n + 1000.5 * n}\n" for n, row in enumerate(rows)))
    assert note in read_own(str(tmp_path / "in"), Labelling(table, target="number")).coverage.notes


def test_shared_images_of_other_layouts_are_said(tmp_path: Path) -> None:
    nut = write_fake_defects(tmp_path) / "nut"
    assert not read_own(str(nut)).coverage.partial
    shutil.copy(nut / "train/good/1.png", nut / "test/good/9.png")
    (note,) = read_own(str(nut)).coverage.notes
    pair = "test/good/9.png and train/good/1.png"
    assert note == f"pixels of 1 of 7 test images are in train of nut, too ({pair})"
    for name in ("query/mug/1.png", "database/mug/2.png", "database/cup/1.png"):
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(nut / "train/good" / f"{name[-5]}.png", tmp_path / "shop" / name)
    (note,) = read_own(str(tmp_path / "shop")).coverage.notes
    assert note.startswith("pixels of 1 of 1 query image are in database, too (")

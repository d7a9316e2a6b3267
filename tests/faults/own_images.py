"""Folders of one's own images, drawn with their truth: splits, spellings of names, and depths in bits.

What is wanted: what is read is what was drawn, or a sentence or note says that it is not.
"""

import json
import random
import shutil
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from layerboard.tasks.datasets.base import images_of
from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.classes import Classification
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.zoo.errors import InputError
from tests.fakes import write_deep_image
from tests.faults.broken_fields import problem_of
from tests.faults.counts import Count

LEAST = 40
"""Drawn variants of each kind; more where a long session tries each kind of file more often."""


def _drawn(
    what: str,
    root: Path,
    times: int,
    seed: int,
    draw_one: Callable[[random.Random, Path], tuple[str, Callable[[], object]]],
) -> Count:
    """Draw so many variants, and read each."""
    count = Count(what)
    for number in range(max(times, LEAST)):
        folder = root / str(number) / "photos"
        folder.mkdir(parents=True)
        name, read = draw_one(random.Random(f"{seed} {number}"), folder)
        count.note(f"{number} {name}", problem_of(read))
        shutil.rmtree(folder.parent)
    return count


def _picture(path: Path, number: int) -> None:
    """An image of its own bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (2, 1), (number % 256, number // 256, 7)).save(path)


def _require(truth: object, found: object, what: str) -> None:
    if truth != found:
        raise AssertionError(f"{what}: drawn {truth}, read {found}")


def _read(folder: Path, table: Path | None = None) -> Classification:
    """Data that may not be refused."""
    try:
        data = read_own(str(folder), Labelling(table))
    except InputError as error:
        raise AssertionError(f"refused: {error}") from error
    assert isinstance(data, Classification)
    return data


# ---- splits -------------------------------------------------------------------------------------

TRAINS = ("train", "training", "trainval")
QUERIES = (
    "val",
    "valid",
    "validation",
    "dev",
    "development",
    "eval",
    "evaluation",
    "test",
    "testing",
    "holdout",
)
FORMS = (
    "{}",
    "{}_set",
    "{}set",
    "{}-images",
    "{}Data",
    "01_{}",
    "{}2017",
    "{} split",
    "flowers_{}",
    "my-{}-v2",
)
CASES: tuple[Callable[[str], str], ...] = (str, str.upper, str.capitalize)
SOURCES = (
    "siteA",
    "siteB",
    "fold1",
    "fold2",
    "camera",
    "scanner",
    "rgb",
    "masks",
    "part-1",
    "part-2",
    "2019",
    "2020",
)
ABOVE = ("", "", "images/", "data/images/", "My Photos/")


def draw_splits(root: Path, times: int, seed: int = 0) -> Count:
    """Splits under many names and at many depths, sources that are none, and nested classes."""
    return _drawn("splits of own images", root, times, seed, _one_split)


def _one_split(draw: random.Random, folder: Path) -> tuple[str, Callable[[], object]]:
    classes = draw.sample(["cat", "dog", "eel", "Öl", "a b", "0", "1", "other"], draw.randint(2, 5))
    above, kind = draw.choice(ABOVE), draw.choice(["splits", "splits", "sources", "below classes", "nested"])
    if kind == "splits":
        form, case = draw.choice(FORMS), draw.choice(CASES)
        words = [draw.choice(TRAINS), *draw.sample(QUERIES, draw.randint(1, 2))]
        names = [form.format(case(word)) for word in words]
        _fill(folder, [f"{above}{name}/{label}" for name in names for label in classes])
        return f"{above}{'+'.join(names)}", lambda: _splits_are(
            folder, {*classes}, f"{above}{names[0]}/", len(names)
        )
    if kind == "nested":
        labels = [f"{draw.choice('xyz')}{label}/{number}{label}" for number, label in enumerate(classes)]
        _fill(folder, [f"{above}{label}" for label in labels])
        return f"nested {above}", lambda: _classes_are(folder, {f"{above}{label}" for label in labels})
    tops = draw.sample(SOURCES, draw.randint(2, 4)) if kind == "sources" else classes
    below = classes if kind == "sources" else [draw.choice(TRAINS), draw.choice(QUERIES)]
    _fill(folder, [f"{above}{top}/{name}" for top in tops for name in below])
    return f"{kind} {above}{'+'.join(tops)}", lambda: _refused(folder, sorted(tops)[:2])


def _fill(folder: Path, places: Iterable[str]) -> None:
    for number, place in enumerate(places):
        for index in range(3):
            _picture(folder / place / f"{index}.png", 3 * number + index)


def _splits_are(folder: Path, classes: set[str], train: str, splits: int) -> None:
    data = read_own(str(folder))
    assert isinstance(data, Classification)
    _require(classes, {*data.train.classes}, "classes")
    _require(
        True, data.val is not None and all(key.startswith(train) for key in data.train.keys), "train apart"
    )
    assert data.val is not None
    _require(False, any(key.startswith(train) for key in data.val.keys), "train in val")
    _require((3 * len(classes),) * 2, (len(data.train.keys), len(data.val.keys)), "images")
    _require(splits > 2, any("further splits left out" in note for note in data.coverage.notes), "left out")


def _classes_are(folder: Path, classes: set[str]) -> None:
    data = _read(folder)
    _require((classes, None, False), ({*data.train.classes}, data.val, data.coverage.partial), "classes")


def _refused(folder: Path, names: Iterable[str]) -> None:
    try:
        data = read_own(str(folder))
    except InputError as error:
        _require([], [name for name in names if name not in str(error)], "folders that are not named")
        raise
    raise AssertionError(f"it was taken: {data.coverage}")


# ---- spellings ----------------------------------------------------------------------------------

ACCENTED = ("café", "naïve", "Ångström", "größe", "한국", "São", "Łódź", "e\u0323\u0302", "plain", "x y")
UNSEEN = (
    *("dog\u200b x", "\u2060dog x", "dog\u00a0x", "dog  x", "d\u00adog x"),
    *("dog x\u200d", "dog x\ufe0f", "dog x\u3164", "dog \ufeffx"),
)
NUMBERS = (("0", "0.0"), ("1", "01"), ("1", "1.0"), ("7", "7,0"), ("10", "+10"), ("3", "003"))
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le")


class Rows(NamedTuple):
    """Drawn images: the name of each file as a table writes it, its class, its split and its group."""

    files: list[str]
    labels: list[str]
    splits: list[str]
    groups: list[str]


def draw_spellings(root: Path, times: int, seed: int = 0) -> Count:
    """Names in both Unicode forms, names that read alike, and names that are one number."""
    return _drawn("spellings of own names", root, times, seed, _one_spelling)


def _one_spelling(draw: random.Random, folder: Path) -> tuple[str, Callable[[], object]]:
    classes = draw.sample(ACCENTED, draw.randint(2, 4))
    twin, kind = "", draw.choice(["form", "form", "unseen", "number"])
    layout = draw.choice(["folders", "split folders", "table", "table", "jsonl"])
    if kind == "number":
        one, twin = draw.choice(NUMBERS)
        classes.append(one)
    elif kind == "unseen":
        twin = draw.choice(UNSEEN)
        classes.append("dog x")
    spelt = [*classes, *([twin] if twin else [])]
    rows = Rows([], [], [], [])
    for number, label in enumerate(each for each in spelt for _ in range(8)):
        rows.labels.append(_formed(draw, label))
        rows.splits.append("" if layout == "folders" else ("train", "val")[number % 2])
        rows.groups.append(_formed(draw, f"é{number % 4}") if layout in ("table", "jsonl") else "")
        rows.files.append(_formed(draw, f"ü{number}.png"))
        parts = [rows.splits[-1], rows.labels[-1]] if "folders" in layout else []
        _picture(folder.joinpath(*parts, _formed(draw, rows.files[-1])), number)
    table = _table(draw, folder, rows, layout) if "folders" not in layout else None
    return f"{kind} in {layout} {spelt}", lambda: _names_are(folder, table, classes, twin, rows)


def _formed(draw: random.Random, name: str) -> str:
    return unicodedata.normalize(draw.choice(["NFC", "NFD"]), name)


def _table(draw: random.Random, folder: Path, rows: Rows, layout: str) -> Path:
    """The table of the images."""
    path = folder.parent / ("labels.jsonl" if layout == "jsonl" else "labels.csv")
    if layout == "jsonl":
        names = ("file_name", "label", "split", "group")
        lines = [
            json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=draw.random() < 0.5)
            for row in zip(*rows, strict=True)
        ]
    else:
        parted = draw.choice(";\t|")
        lines = [parted.join(("file", "label", "split", "group"))]
        lines += [parted.join(row) for row in zip(*rows, strict=True)]
    path.write_text(
        draw.choice(["\n", "\r\n"]).join(lines) + "\n", encoding=draw.choice(ENCODINGS), newline=""
    )
    return path


def _names_are(folder: Path, table: Path | None, classes: list[str], twin: str, rows: Rows) -> None:
    data = _read(folder, table)
    truth = {unicodedata.normalize("NFC", name) for name in classes}
    said = [text for text in (*data.coverage.notes, *data.coverage.remarks) if "told apart" in text]
    if twin:
        _require(True, any("classes that" in text for text in said), "names that are alike are said")
        _require(len(truth) + 1, len(data.train.classes), "classes")
        return
    _require((truth, []), ({*data.train.classes}, said), "classes")
    sides = [len(side.keys) for side in data.sides.values()]
    _require(len(rows.files), sum(sides), "images")
    _require(2 if any(rows.splits) else 1, len(sides), "splits")
    groups = {unicodedata.normalize("NFC", name) for name in rows.groups} - {""}
    _require(groups, {group for side in data.sides.values() for group in side.groups} - {""}, "groups")


# ---- depths -------------------------------------------------------------------------------------

KINDS = ("PNG", "<raw", ">raw", "<deflate", ">deflate", "I", "PPM", "JPEG2000")


def draw_depths(root: Path, times: int, seed: int = 0) -> Count:
    """Values of 8 to 16 bits in files of 16 and 32, in one dataset and alone."""
    return _drawn("depths in bits of own images", root, times, seed, _one_depth)


def _one_depth(draw: random.Random, folder: Path) -> tuple[str, Callable[[], object]]:
    most = draw.choice([8, 8, 9, 10, 12, 12, 14, 15, 16])
    parts = draw.choice([("a", "b"), ("train/a", "train/b", "val/a", "val/b")])
    truth: dict[str, np.ndarray] = {}
    kinds = draw.sample(KINDS, draw.randint(1, 3))
    for number, part in enumerate(part for part in parts for _ in range(3)):
        bits = most if number == 4 else draw.randint(max(8, most - 3), most)
        kind = draw.choice(kinds)
        channels = draw.choice([1, 2, 3, 4] if kind == "PNG" else [1, 3, 4] if kind[0] in "<>" else [1])
        values = np.random.default_rng(draw.randrange(2**32)).integers(0, 2**bits, (6, 5, channels))
        values[0, 0] = 2**bits - 1
        if channels in (2, 4):
            values[..., -1] = 2**16 - 1
        ending = draw.choice(("tif", "png", "jpg"))
        truth[f"{part}/{number}.{ending}"] = values
        _write(folder / part / f"{number}.{ending}", values, kind)
    for part in parts:
        for index in range(draw.randint(0, 2)):
            _picture(folder / part / f"plain{index}.png", index + 10 * len(part))
    return f"{most} bits as {kinds}", lambda: _values_are(folder, truth, most)


def _write(path: Path, values: np.ndarray, kind: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind in ("PNG", "<raw", ">raw", "<deflate", ">deflate"):
        write_deep_image(path, values, kind)
    elif kind == "I":
        Image.fromarray(values[..., 0].astype(np.int32)).save(path, format="TIFF")
    else:
        Image.fromarray(values[..., 0].astype(np.uint16)).save(path, format=kind)


def _values_are(folder: Path, truth: dict[str, np.ndarray], bits: int) -> None:
    data = _read(folder)
    said = f"{len(truth)} images of more than 8 bits a channel: values use {bits} bits"
    _require(True, any(remark.startswith(said) for remark in data.coverage.remarks), said)
    found = {sample.key: sample for sample in images_of(data)}
    for key, values in truth.items():
        colours = values[..., :1] if values.shape[2] < 3 else values[..., :3]
        expected = np.broadcast_to(colours >> (bits - 8), (*values.shape[:2], 3))
        if not np.array_equal(np.asarray(found[key].open()), expected):
            raise AssertionError(f"{key} of shape {values.shape} is read otherwise")
        _require(bits < 16, f"|{bits} bits" in found[key].signature(), "part of the identity")

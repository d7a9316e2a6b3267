"""One answer to what a label is, by values and by the ways in which they come in."""

import datetime as dt
import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from PIL import Image

from layerboard.benchmark.exported.archives import read_clustered
from layerboard.tasks.datasets.classes import Classification
from layerboard.tasks.datasets.folder import read_folder
from layerboard.tasks.datasets.hub import read_hub_dataset
from layerboard.tasks.datasets.reading.archives import unpacked
from layerboard.tasks.datasets.reading.door import cell, class_names, label_text, labels_text
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.tasks.datasets.reading.memory import stored
from layerboard.zoo.errors import InputError
from tests.tasks.datasets.reading.test_webdataset import png, tar


class Kind(Enum):
    CAT = "cat"


SAME: dict[str, Sequence[object]] = {
    "cat": ("cat", " cat\n", b"cat", np.bytes_("cat"), np.str_("cat"), Kind.CAT, pa.scalar("cat"), ["cat"]),
    "1": (1, 1.0, np.uint8(1), np.float32(1), torch.tensor(1.0), np.array([1]), Decimal("1.0"), "1"),
    "0": (0, -0.0, torch.tensor(0)),
    "0.5": (0.5, np.float32(0.5), Decimal("0.5")),
    "True": (True, np.bool_(1), torch.tensor(True)),
    "caf\u00e9": ("caf\u00e9", "cafe\u0301"),
    "NA": ("NA",),
    "": (
        *(None, "", " ", float("nan"), np.float32("nan"), Decimal("nan"), torch.tensor(torch.nan)),
        *(pd.NA, pd.NaT, np.datetime64("NaT"), np.ma.masked, pa.scalar(None), [None], []),
    ),
    "a|b": (["a", "b"], np.array(["a", "b"]), {"b", "a"}, ("a", None, "b")),
}


@pytest.mark.parametrize("text", SAME)
def test_one_label_has_one_text(text: str) -> None:
    assert {labels_text(value, "a label") for value in SAME[text]} == {text}


@pytest.mark.parametrize(
    "value",
    [
        *(Image.new("L", (1, 1)), {"a": 1}, [["a"]], object(), dt.date(2020, 1, 1), 1j, b"\xff"),
        *(float("inf"), "\ud800", [0, 0, 1], [0.5, 1.5], np.eye(2)),
    ],
)
def test_what_is_no_label_is_refused_by_its_place(value: object) -> None:
    with pytest.raises(InputError, match=r"expected .* as the label of item 3"):
        labels_text(value, "the label of item 3")


def test_numbers_of_names_and_missing_cells() -> None:
    names = class_names(np.array(["dog", "cat"]))
    assert [label_text(each, "it", names) for each in (1, 0.0, torch.tensor(-1), "x")] == [
        "cat",
        "dog",
        "",
        "x",
    ]
    for number in (2, -2, 0.5):
        with pytest.raises(
            InputError, match=re.escape("from 0 to 1 (or -1 for none) as it, since 2 classes")
        ):
            label_text(number, "it", names)
    assert class_names([("tench", "Tinca"), ("ray",)]) == ("tench, Tinca", "ray")
    assert [class_names(each) for each in (None, 2, {"dog": 0}, ["crane", "crane"])] == [()] * 4
    assert [cell(each) for each in (" NA ", "<NA>", "nan", "None", "none", "-1")] == [*[""] * 4, "none", "-1"]


def in_memory(labels: Sequence[str | None], place: Path) -> Any:
    images = [Image.new("L", (4, 4), 9 * number) for number in range(len(labels))]
    return read_folder(stored([*zip(images, labels, strict=True)], place))


def of_the_hub(labels: Sequence[str | None], place: Path) -> Any:
    kinds = {"image": datasets.Image(), "label": datasets.ClassLabel(names=["dog", "cat", "NA"])}
    numbers = [-1 if label is None else kinds["label"].str2int(label) for label in labels]
    rows = {"image": [Image.new("L", (4, 4))] * len(labels), "label": numbers}
    datasets.Dataset.from_dict(rows, features=datasets.Features(kinds)).save_to_disk(str(place))
    return read_hub_dataset(f"hf:{place}")


def of_a_table(labels: Sequence[str | None], place: Path) -> Any:
    rows = [{"file": f"{number}.png", "label": label} for number, label in enumerate(labels)]
    place.mkdir()
    for number, _ in enumerate(labels):
        (place / f"{number}.png").write_bytes(png(number))
    (place / "l.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return read_folder(place, Labelling(place / "l.jsonl"))


def of_shards(labels: Sequence[str | None], place: Path) -> Any:
    files: dict[str, bytes | str] = {}
    for number, label in enumerate(labels):
        files |= {f"v1.0/{number}.png": png(number), f"v1.0/{number}.json": json.dumps({"class": label})}
    return read_folder(Path(unpacked(str(tar(place / "x.tar", files)), place)))


def of_an_archive(labels: Sequence[str | None], place: Path) -> Any:
    place.mkdir()
    texts = np.array([label or "nan" for label in labels])
    np.savez(place / "x.npz", features=np.random.default_rng(0).normal(size=(len(labels), 3)), labels=texts)
    return read_clustered(place / "x.npz").data.images


@pytest.mark.parametrize("read", [in_memory, of_the_hub, of_a_table, of_shards, of_an_archive])
def test_the_same_labels_are_the_same_classes_by_every_way_in(
    read: Callable[[Sequence[str | None], Path], Classification], tmp_path: Path
) -> None:
    cat, other = (
        "cat",
        "dog" if read is of_an_archive else "NA",
    )  # an array of text has no other word for none
    data = read([cat, None, other, cat, other, None, cat, other], tmp_path / "in")
    assert [data.train.classes[label] for label in data.train.labels] == [cat, other, cat, other, cat, other]
    assert re.match(r"2 (images whose row has no class|of 8 items have no class)", data.coverage.notes[0])
    assert data.coverage.partial

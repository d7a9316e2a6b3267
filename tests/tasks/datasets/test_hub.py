import io
import pickle
from collections.abc import Sequence
from pathlib import Path

import datasets
import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.hub import TableSample, read_hub_dataset
from layerboard.tasks.datasets.hub_spec import parse_hub_spec
from layerboard.zoo.errors import InputError, UnreadableImageError
from tests.fakes import fake_image
from tests.tasks.datasets.helpers import keys

NAMES = ["zebra", "ant"]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()


def png(kind: int, mode: str = "RGB") -> dict[str, object]:
    stream = io.BytesIO()
    fake_image(kind, (20, 16), np.random.default_rng(kind))[0].convert(mode).save(stream, "PNG")
    return {"bytes": stream.getvalue(), "path": None}


def table(labels: Sequence[int | None], **columns: list[object]) -> datasets.Dataset:
    """A table with images, class labels and further columns; extra images are those named image..."""
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)}
    features |= {
        name: datasets.Image() if name.startswith("image") else datasets.Value("string") for name in columns
    }
    content = {"image": [png(index) for index in range(len(labels))], "label": list(labels), **columns}
    return datasets.Dataset.from_dict(content, features=datasets.Features(features))


def save(path: Path, **splits: datasets.Dataset) -> str:
    datasets.DatasetDict(splits).save_to_disk(str(path))
    return f"hf:{path}"


@pytest.mark.parametrize("split", ["validation", "val", "dev"])  # before test, as in folders
def test_splits_and_labels(split: str, tmp_path: Path) -> None:
    asked = {split: table([1, 0]), "test": table([0])}
    spec = save(tmp_path / "set", train=table([0, 1, 0, 1]), **asked)
    dataset = read_hub_dataset(spec)
    assert dataset.name == spec
    assert dataset.train.classes == ("ant", "zebra")
    assert dataset.train.labels.tolist() == [1, 0, 1, 0]
    assert keys(dataset.val.samples) == [f"{split}/000000000", f"{split}/000000001"]
    assert str(dataset.coverage) == "2 classes, 4 train images, 2 val images"
    image = dataset.val.samples[0].open()
    assert (image.mode, image.size) == ("RGB", (20, 16))


def test_classes_of_one_train_image_are_counted(tmp_path: Path) -> None:
    dataset = read_hub_dataset(save(tmp_path / "set", train=table([0, 1, 1]), test=table([0, 1])))
    assert str(dataset.coverage).endswith("2 val images; 1 class of one train image (zebra)")


def test_signatures_differ_and_stay(tmp_path: Path) -> None:
    spec = save(tmp_path / "set", train=table([0, 1]), test=table([0, 1]))
    first, second = read_hub_dataset(spec), read_hub_dataset(spec)
    signatures = [sample.signature() for sample in (*first.train.samples, *first.val.samples)]
    assert len(set(signatures)) == 4
    assert signatures == [sample.signature() for sample in (*second.train.samples, *second.val.samples)]


def test_samples_travel_to_other_processes(tmp_path: Path) -> None:
    spec = save(tmp_path / "set", train=table([0, 1]), test=table([0, 1]))
    sample = read_hub_dataset(spec).train.samples[1]
    again = pickle.loads(pickle.dumps(sample))
    assert again == sample
    assert again.open().tobytes() == sample.open().tobytes()


def test_of_one_split_every_image_is_tested(tmp_path: Path) -> None:
    table([0, 1] * 10).save_to_disk(str(tmp_path / "one"))
    dataset = read_hub_dataset(f"hf:{tmp_path / 'one'}")
    assert dataset.val is None
    assert np.bincount(dataset.train.labels).tolist() == [10, 10]
    assert keys(dataset.train.samples) == sorted(keys(dataset.train.samples))
    table([0, 1, 1, 1]).save_to_disk(str(tmp_path / "small"))
    assert "has 1 in zebra" in read_hub_dataset(f"hf:{tmp_path / 'small'}").untestable


def test_columns_and_splits_by_choice(tmp_path: Path) -> None:
    columns: dict[str, list[object]] = {"image_2": [png(7), png(8)], "name": ["b", "a"]}
    spec = save(tmp_path / "set", extra=table([0, 1], **columns), other=table([0, 1], **columns))
    with pytest.raises(InputError, match=r"found extra, other; choose them with \?train=SPLIT&val=SPLIT"):
        read_hub_dataset(spec)
    spec += "?train=other&val=extra"
    with pytest.raises(
        InputError, match=r"one image column in .* found image, image_2; choose with hf:ID\?image="
    ):
        read_hub_dataset(spec)
    dataset = read_hub_dataset(spec + "&image=image_2&label=name")
    assert dataset.train.classes == ("a", "b")
    assert dataset.train.labels.tolist() == [1, 0]
    expected = Image.open(io.BytesIO(png(7)["bytes"])).tobytes()  # type: ignore[arg-type]
    assert dataset.train.samples[0].open().tobytes() == expected
    with pytest.raises(
        InputError, match=r"label=nothing to name a column .* found image, image_2, label, name"
    ):
        read_hub_dataset(spec + "&image=image_2&label=nothing")
    with pytest.raises(InputError, match=r"expected a split 'no' in .*, found extra, other"):
        read_hub_dataset(spec.replace("train=other", "train=no"))


BARE = table([0, 1]).remove_columns("label")
TEXT = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]})


@pytest.mark.parametrize(
    ("splits", "words"),
    [
        ({"train": TEXT, "test": TEXT}, r"expected one image column in .*, found none; choose"),
        (
            dict.fromkeys(("train", "test"), table([0, 1]).remove_columns("label")),
            "expected one ClassLabel column in .*, found none; choose",
        ),
        (
            {"train": table([0, 1]), "test": table([-1, -1])},
            r"a class in the rows of split test of .*, in the column label, found",
        ),
        (
            {"train": table([0, 0]), "test": table([1, 0])},
            r"split test, to be among those of train, found ant there only",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, splits: dict[str, datasets.Dataset], words: str) -> None:
    spec = save(tmp_path / "set", **splits)
    with pytest.raises(InputError, match=words):
        read_hub_dataset(spec)


def test_nothing_saved_there_and_no_network(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot load dataset .*; name a folder written by save_to_disk"):
        read_hub_dataset(f"hf:{tmp_path / 'nothing'}")
    with pytest.raises(
        InputError, match=r"cannot load dataset hf:nobody/nothing: .*check the id and the network"
    ):
        read_hub_dataset("hf:nobody/nothing")


class OneRow(list[dict[str, object]]):
    """A table without the library."""


@pytest.mark.parametrize(
    "stored", [None, {"bytes": b"no image", "path": None}, {"bytes": None, "path": None}]
)
def test_rows_without_image(stored: dict[str, object] | None) -> None:
    sample = TableSample("train/0", 0, "image", "f", OneRow([{"image": stored}]))
    with pytest.raises(UnreadableImageError, match=r"cannot decode image train/0"):
        sample.open()


def test_specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_hub_spec("hf:a/b@main?image=x").revision == "main"
    assert parse_hub_spec("hf:a/b?image=x&label=y").options == {"image": "x", "label": "y"}
    assert not parse_hub_spec("hf:a/b").local
    assert parse_hub_spec("hf:/a@b/c").location == "/a@b/c"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved").mkdir()
    assert parse_hub_spec("hf:saved").local


@pytest.mark.parametrize(
    "text", ["cifar10", "hf:", "hf:a/b@", "hf:a?image", "hf:a?colour=x", "hf:a?image=x&image=y"]
)
def test_wrong_specs(text: str) -> None:
    with pytest.raises(InputError, match=r"expected"):
        parse_hub_spec(text)

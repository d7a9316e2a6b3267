"""ImageNet-1k in the Hub's form is read as from its official folder; CIFAR is in `test_cifar`."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from layerboard.tasks.datasets.imagenet import IMAGENET
from layerboard.tasks.datasets.reading.files import data_root
from layerboard.tasks.framework.base import Group, Source
from layerboard.tasks.framework.identity import identity
from layerboard.zoo.errors import InputError, MissingDataError
from layerboard.zoo.view.views import ResizeCrop
from tests import fakes

CLASSES = ["tench, Tinca tinca", "goldfish, Carassius auratus", "great white shark"]


def _hub_name(split: str, wnid: str, file: Path) -> str:
    return f"{file.stem}_{wnid}{file.suffix}"


def write_hub_imagenet(
    data: Path, target: Path, name: Callable[[str, str, Path], str | None] = _hub_name, shards: int = 2
) -> Path:
    """Images of an official folder, shuffled, as ``data/{train,validation}-*.parquet``."""
    (target / "data").mkdir(parents=True)
    for split, folder in (("train", "train"), ("validation", "val")):
        files = sorted((data / "imagenet" / folder).glob("*/*.JPEG"))
        np.random.default_rng(1).shuffle(files)  # type: ignore[arg-type]
        rows: dict[str, list[Any]] = {
            "image": [
                {"bytes": one.read_bytes(), "path": name(split, one.parent.name, one)} for one in files
            ],
            "label": [int(one.parent.name[1:]) - 1 for one in files],
        }
        features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)})
        table = datasets.Dataset.from_dict(rows, features)
        for number in range(shards):
            path = target / "data" / f"{split}-{number:05d}-of-{shards:05d}.parquet"
            table.shard(shards, number, contiguous=True).to_parquet(path)
    return target


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("official")
    fakes.write_fake_imagenet(data)
    return data


@pytest.fixture(scope="module")
def on_hub(official: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hub_imagenet(official, tmp_path_factory.mktemp("hub"))


def test_images_keys_labels_counts_and_identity_are_those_of_the_folder(official: Path, on_hub: Path) -> None:
    found, expected = (IMAGENET.read(data) for data in (data_root(Path(f"hf:{on_hub}")), official))
    assert str(found.coverage) == str(expected.coverage)
    assert found.train.classes == expected.train.classes == ("n00000001", "n00000002", "n00000003")
    for mine, theirs in ((found.train, expected.train), (found.val, expected.val)):
        assert mine.labels.tolist() == theirs.labels.tolist()
        assert [one.key for one in mine.samples] == [one.key for one in theirs.samples]
        assert [one.open().tobytes() for one in mine.samples] == [
            one.open().tobytes() for one in theirs.samples
        ]
        sources = [Source("s", (Group("g", one.samples),), ResizeCrop(256, 224)) for one in (mine, theirs)]
        assert identity(sources[0]) == identity(sources[1])
    assert len({one.signature() for one in found.train.samples}) == 12


def test_a_dataset_of_the_hub_is_read_from_what_was_fetched(
    official: Path, on_hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched, commit = tmp_path / "datasets--me--copy", "0123456789abcdef0123456789abcdef01234567"
    (fetched / "snapshots").mkdir(parents=True)
    (fetched / "snapshots" / commit).symlink_to(on_hub)
    (fetched / "refs").mkdir()
    (fetched / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    root = data_root(Path("hf:me/copy"))
    assert str(root) == f"hf:me/copy@{commit}!"
    found, expected = (IMAGENET.read(data).train.samples[0].open() for data in (root, official))
    assert found.tobytes() == expected.tobytes()
    with pytest.raises(
        MissingDataError, match=r"cannot fetch dataset hf:me/other: .*; check the id and the network"
    ):
        data_root(Path("hf:me/other"))


def test_a_missing_file_is_told_by_the_names_of_the_others(on_hub: Path, tmp_path: Path) -> None:
    shutil.copytree(on_hub, tmp_path / "copy")
    (tmp_path / "copy" / "data" / "train-00001-of-00002.parquet").unlink()
    with pytest.raises(
        InputError, match=r"expected 2 files train-\*.parquet in .*, found 1; fetch the others"
    ):
        data_root(Path(f"hf:{tmp_path}/copy"))


@pytest.mark.parametrize("number", [0, 1])
def test_a_truncated_file(on_hub: Path, tmp_path: Path, number: int) -> None:
    shutil.copytree(on_hub, tmp_path / "copy")
    path = tmp_path / "copy" / "data" / f"train-0000{number}-of-00002.parquet"
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(
        InputError, match=r"(which is damaged|cannot load the parquet files).*; fetch (it|them) again"
    ):
        data_root(Path(f"hf:{tmp_path}/copy"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            lambda split, wnid, file: file.name,
            r"one class a label, in split train of .*, found '.*' of label \d",
        ),
        (lambda split, wnid, file: None, r"found None of label \d; other datasets go with --images"),
        (lambda split, wnid, file: f"{file.stem}_n0000000{len(split) % 9}.JPEG", r"one class a label"),
        (
            lambda split, wnid, file: f"a_{wnid}.JPEG",
            r"expected each image once in .*, found several of 'imagenet/train/n",
        ),
    ],
)
def test_names_that_are_not_those_of_imagenet(
    official: Path, tmp_path: Path, name: Callable[[str, str, Path], str | None], said: str
) -> None:
    root = write_hub_imagenet(official, tmp_path / "hub", name, shards=1)
    with pytest.raises(InputError, match=said):
        data_root(Path(f"hf:{root}"))


def test_other_columns(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        datasets.Dataset.from_dict({"text": ["a"]}).to_parquet(tmp_path / f"{split}-00000-of-00001.parquet")
    with pytest.raises(
        InputError, match=r"expected the columns image and label or img .* in .*, found text; other datasets"
    ):
        data_root(Path(f"hf:{tmp_path}"))

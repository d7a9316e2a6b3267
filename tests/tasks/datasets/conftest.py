"""One small data folder and its pack, which tests of packs share."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from layerboard.tasks.datasets.catalogue import DATASETS
from layerboard.tasks.datasets.classes import Classification
from layerboard.tasks.datasets.spair_facts import LEVELS
from tests import fakes
from workshop.render.write_packs import PackedFile, packed_files, write_dataset

NAMES = ("imagenet", "roxford5k", "davis-2017-val", "spair-71k-test", "voc-2012-val", "ade20k-val")
NAMES += ("coco-val2017", "partimagenet")
SMALL = 5
"""Files of a shard: several shards a dataset."""


@dataclass(frozen=True)
class Packed:
    """A data folder and its pack."""

    data: Path
    pack: Path

    @property
    def name(self) -> Path:
        return Path(f"hf:{self.pack}")


def pack(data: Path, target: Path, *names: str) -> Path:
    """Write a pack of some datasets, in shards of few files."""
    for entry in DATASETS:
        if entry.name in names:
            dataset, folder = entry.read(data), data / entry.folder
            classes = dataset.train.classes if isinstance(dataset, Classification) else ()
            splits = (
                {"train": folder / "train", "validation": folder / "val"} if classes else {"files": folder}
            )
            shards = {}
            for split, below in splits.items():
                shards |= _shards(split, packed_files(data, below, classes))
            write_dataset(data, target, entry.name, shards, classes)
    return target


def _shards(split: str, files: list[PackedFile]) -> dict[str, list[PackedFile]]:
    number = -(-len(files) // SMALL)
    return {f"{split}-{n:05d}-of-{number:05d}": files[n * SMALL : (n + 1) * SMALL] for n in range(number)}


def _say_how_hard(spair: Path) -> None:
    """Give pairs the fields of the official files, and cats, not dogs, annotations of single images."""
    for path in (spair / "PairAnnotation" / "test").iterdir():
        path.write_text(json.dumps(json.loads(path.read_text()) | dict.fromkeys(LEVELS, 1)))
    for path in (spair / "JPEGImages" / "cat").iterdir():
        note = spair / "ImageAnnotation" / "cat" / f"{path.stem}.json"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"kps": {"0": [1, 2], "1": [3, 4], "2": None}}))


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """All layouts; not to be changed."""
    data = tmp_path_factory.mktemp("official")
    fakes.write_fake_imagenet(data)
    fakes.write_fake_revisited(data)
    fakes.write_fake_davis(data)
    _say_how_hard(fakes.write_fake_spair(data))
    fakes.write_fake_voc(data)
    fakes.write_fake_ade(data)
    fakes.write_fake_coco(data)
    fakes.write_fake_partimagenet(data, images=2)
    return Packed(data, pack(data, tmp_path_factory.mktemp("pack"), *NAMES))


@pytest.fixture
def own(packed: Packed, tmp_path: Path) -> Packed:
    """The same, its pack to be damaged."""
    shutil.copytree(packed.pack, tmp_path / "pack")
    return Packed(packed.data, tmp_path / "pack")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `datasets` writes once more goes away with the test."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "hf"))

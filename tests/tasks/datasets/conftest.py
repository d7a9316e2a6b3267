"""One small data folder and its pack, which tests of packs share."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from layerboard.tasks.datasets.catalogue import DATASETS
from layerboard.tasks.datasets.spair_facts import LEVELS
from layerboard.tasks.datasets.write_packs import plan_dataset, write_dataset
from tests import fakes

NAMES = ("imagenet", "roxford5k", "davis-2017-val", "spair-71k-test", "voc-2012-val", "ade20k-val")
NAMES += ("coco-val2017", "partimagenet")
SMALL = 6000
"""Bytes of a shard: several shards a dataset."""


@dataclass(frozen=True)
class Packed:
    """A data folder and its pack."""

    data: Path
    pack: Path

    @property
    def name(self) -> Path:
        return Path(f"hf:{self.pack}")


def pack(data: Path, target: Path, *names: str, largest: int = SMALL) -> Path:
    """Write a pack of some datasets."""
    for entry in DATASETS:
        if entry.name in names:
            write_dataset(data, target, plan_dataset(data, entry, largest), lambda amount: None)
    return target


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
    (data / "VOCdevkit" / "VOC2012" / "JPEGImages" / "unlisted.jpg").write_bytes(b"not of the split")
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

"""A dataset is one entry and one row: it is checked, limited and run on like those that are there."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.benchmark.plan import suites
from layerboard.tasks.datasets import catalogue
from layerboard.tasks.datasets.reading.files import file_paths
from layerboard.tasks.datasets.scenes import Files, SceneEntry
from tests.benchmark.runs import add_row, command, run
from workshop.render.masks import write_mask


@dataclass(frozen=True, slots=True)
class StripesEntry(SceneEntry):
    """Grey images whose bright columns are a class."""

    classes = ("dark", "bright")
    offset = 0

    name: str = "stripes"
    folder: str = "stripes"
    train_images: int = 4
    val_images: int = 2
    memory: int = 1000
    most: int | None = None

    @property
    def layout(self) -> str:
        return f"{self.folder}/{{train,val}}/*.jpg and *.png"

    def splits(self, root: Path) -> dict[str, Files]:
        splits: dict[str, Files] = {}
        for split in ("train", "val"):
            images = file_paths(root / split, ".jpg")
            splits[split] = {f"{split}/{path.stem}": (path, path.with_suffix(".png")) for path in images}
        return splits


STRIPES = StripesEntry()


@pytest.fixture
def stripes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with the dataset, which has its row."""
    add_row(monkeypatch, catalogue, "DATASETS", STRIPES)
    for number in range(6):
        mask = np.zeros((48, 48), np.uint8)
        mask[:, 6 * number : 6 * number + 18] = 1
        path = tmp_path / "data" / "stripes" / ("train" if number < 4 else "val") / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(mask * np.uint8(200)).save(path)
        write_mask(path.with_suffix(".png"), mask)
    return tmp_path / "data"


def line(out: str) -> str:
    return next(row for row in out.splitlines() if row.startswith("stripes"))


def test_a_new_dataset_is_checked(stripes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "complete  4 of 4 training images, 2 of 2 validation images"
    assert said in line(command(capsys, "check", "--data", stripes).out)
    (stripes / "stripes" / "val" / "5.png").unlink()
    changed = line(command(capsys, "check", "--data", stripes).out)
    assert "partial  4 of 4 training images, 1 of 2 validation images" in changed


def test_a_new_dataset_is_run_on(stripes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = replace(suites.STANDARD_SUITE, datasets=catalogue.DATASETS)
    monkeypatch.setattr(suites, "SUITES", (suite,))
    whole = run(tmp_path / "whole", ["mini-fs"], "segment", data=stripes)
    limited = run(tmp_path / "limited", ["mini-fs"], "segment", data=stripes, limit=1)
    assert {*whole["dataset"]} == {*limited["dataset"]} == {"stripes"}
    assert whole["coverage"].str.startswith("4 of 4 training images").all()
    assert limited["coverage"].str.endswith("limited to 1 image of each split").all()
    assert {*whole["data"]}.isdisjoint(limited["data"])

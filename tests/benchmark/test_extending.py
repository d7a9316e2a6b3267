"""Whatever the house has several of is added by what it is and by one row: a toy of each kind.

A task and an analysis are in `test_own_tasks`, as the page on them shows; a toy command is in
`commands.test_command`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from layerboard.benchmark.commands import export
from layerboard.benchmark.engines.base import Engine, Job, JobQueue, LocalEngine, Result, Work
from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.forms import request
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.plan import suites
from layerboard.leaderboards.blocks.blocks import Block, Heading, said
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections import order
from layerboard.tasks.datasets import catalogue
from layerboard.tasks.datasets.reading.files import file_paths
from layerboard.tasks.datasets.scenes import Files, SceneEntry
from layerboard.zoo.spec import BackboneSpec
from tests.benchmark.runs import Cli, add_row, leave_cost_out, run
from workshop.render.masks import write_mask

if TYPE_CHECKING:
    from layerboard.benchmark.commands.export import ExportRequest, FileTexts


def toy_blocks(board: Board) -> list[Block]:
    names = " and ".join(backbone.name for backbone in board.backbones)
    return [Heading(2, "A toy section"), said("There is {names}.", names=names)]


class ToyEngine(LocalEngine):
    """The engine of this process, which remembers what it was asked."""

    asked: ClassVar[list[str]] = []

    def run(self, function: Work[Job, Result], jobs: JobQueue[Job, Result], report: Reporter) -> None:
        self.asked.append(type(function).__name__)
        super().run(function, jobs, report)


def toy_engine(
    backbones: Sequence[BackboneSpec], request: Request, devices: Sequence[torch.device]
) -> Engine:
    return ToyEngine()


def toy_files(records: pd.DataFrame, request: "ExportRequest") -> "FileTexts":
    yield "toy.txt", f"{len(records)} records\n"


@dataclass(frozen=True)
class ToyRun:
    """A run with one row more in each table."""

    records: pd.DataFrame
    output: Path

    def page(self, name: str) -> str:
        return (self.output / "tables" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def toy_run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyRun]:
    with pytest.MonkeyPatch.context() as patch:
        leave_cost_out(patch)
        add_row(patch, order, "SECTIONS", toy_blocks)
        patch.setitem(request.ENGINES, "toy", f"{__name__}:toy_engine")
        place = tmp_path_factory.mktemp("toys")
        records = run(place, ["mini-fs"], "knn", data=data, engine="toy", pages=True)
        yield ToyRun(records, place / "out")


def test_a_section_is_a_function_of_the_board_and_a_row(toy_run: ToyRun) -> None:
    assert "## A toy section\n\nThere is mini-fs." in toy_run.page("standard.md")


def test_an_engine_is_a_class_and_a_row(toy_run: ToyRun) -> None:
    assert ToyEngine.asked == ["PassesAndScores"]


def test_an_export_is_a_function_and_a_row(
    toy_run: ToyRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setitem(export.FORMS, "toy", toy_files)
    said = cli("export", "toy", "-o", toy_run.output, "--to", tmp_path)
    assert said.code == 0, said.err
    assert (tmp_path / "toy.txt").read_text() == f"{len(toy_run.records)} records\n"
    wrong = cli("export", "nothing", "-o", toy_run.output)
    assert "latex, csv, hub, onnx or toy" in wrong.error


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


def test_a_new_dataset_is_checked(stripes: Path, cli: Cli) -> None:
    said = "complete  4 of 4 training images, 2 of 2 validation images"
    assert said in line(cli("check", "--data", stripes).out)
    (stripes / "stripes" / "val" / "5.png").unlink()
    changed = line(cli("check", "--data", stripes).out)
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

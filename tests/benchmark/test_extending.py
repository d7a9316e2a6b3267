"""Whatever the house has several of is added by what it is and by one row: a toy of each kind.

A toy dataset is in `test_new_dataset`, a toy command in `commands.test_command`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from layerboard.benchmark.commands import export
from layerboard.benchmark.engines.base import Engine, Job, JobQueue, LocalEngine, Result, Work
from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.forms import request
from layerboard.benchmark.forms.request import Request
from layerboard.leaderboards.blocks.blocks import Block, Heading, said
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections import order
from layerboard.tasks.analyses.base import ImageAnalysis, KeptImages, Tally
from layerboard.tasks.framework import registry
from layerboard.tasks.framework.base import Device, Findings, LayerOutcome, Outcome, Score, Source, digest
from layerboard.tasks.framework.feeds import ATTENTION
from layerboard.tasks.framework.registry import TaskEntry
from layerboard.tasks.framework.task import VectorTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import BackboneSpec, Layer
from tests.benchmark import runs
from tests.benchmark.runs import add_row, leave_cost_out, run

if TYPE_CHECKING:
    from layerboard.benchmark.commands.export import ExportRequest, FileTexts

Capture = pytest.CaptureFixture[str]


class PositiveTask(VectorTask):
    """Numbers of the vectors of validation images that are above 0, in percent."""

    split = "val"

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        return (self.data.val,)

    @property
    def fingerprint(self) -> str:
        return digest("toy-task", 1)

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        above = vectors[self.data.val.name] > 0
        return Outcome((Score("above zero", 100.0 * float(above.mean()), len(above), "images"),))


TASK = TaskEntry(
    name="toy-task",
    role="classification",
    title="a toy",
    data="ImageNet-1k",
    metrics=("above zero",),
    asks="Are numbers above 0?",
    measures="above zero: numbers of vectors that are",
    default=False,
    code=f"{__name__}:PositiveTask",
)


@dataclass(frozen=True, eq=False)
class FirstTokenAnalysis(ImageAnalysis[AttentionMaps]):
    """What all tokens give to the first one."""

    feed = ATTENTION

    def reduce(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> Mapping[str, Tensor]:
        return {"share": maps.probabilities[..., 0].float().mean(dim=-1)}

    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        tally = Tally(images.keys)
        tally.heads("toy-share", images.each("share"))
        return Findings((LayerOutcome(layer, "patch", tally.outcome()),))


ANALYSIS = replace(
    TASK,
    name="toy-analysis",
    data="ImageNet-50",
    metrics=("toy-share",),
    asks="Is the first token looked at?",
    measures="toy-share: share of attention",
    analysis=True,
    labels=False,
    code=f"{__name__}:FirstTokenAnalysis",
)


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
        add_row(patch, registry, "TASKS", TASK)
        add_row(patch, registry, "TASKS", ANALYSIS)
        add_row(patch, order, "SECTIONS", toy_blocks)
        patch.setitem(request.ENGINES, "toy", f"{__name__}:toy_engine")
        place = tmp_path_factory.mktemp("toys")
        records = run(place, ["mini-fs"], "toy-task", "toy-analysis", data=data, engine="toy", pages=True)
        yield ToyRun(records, place / "out")


def test_a_task_is_a_class_and_a_row(toy_run: ToyRun) -> None:
    assert toy_run.records.attrs["failures"] == []
    scores = toy_run.records.query("task == 'toy-task'")
    assert {*scores["pooling"]} == {"cls", "mean"}
    assert scores["value"].between(1, 99).all()
    assert "toy-task above zero" in toy_run.page("standard.md")


def test_an_analysis_is_a_class_and_a_row(toy_run: ToyRun) -> None:
    shares = toy_run.records.query("task == 'toy-analysis' and value == value")
    assert {*shares["metric"]} == {"toy-share"}
    assert np.sort(shares["head"].unique()).tolist() == [-1, 0, 1, 2]
    assert "toy-share" not in toy_run.page("standard.md")
    inside = toy_run.page("standard.inside.md")
    assert "Is the first token looked at?" in inside
    assert "toy-share: share of attention" in inside


def test_a_section_is_a_function_of_the_board_and_a_row(toy_run: ToyRun) -> None:
    assert "## A toy section\n\nThere is mini-fs." in toy_run.page("standard.md")


def test_an_engine_is_a_class_and_a_row(toy_run: ToyRun) -> None:
    assert ToyEngine.asked == ["PassesAndScores"]


def test_an_export_is_a_function_and_a_row(
    toy_run: ToyRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(export.FORMS, "toy", toy_files)
    said = runs.command(capsys, "export", "toy", "-o", toy_run.output, "--to", tmp_path)
    assert said.code == 0, said.err
    assert (tmp_path / "toy.txt").read_text() == f"{len(toy_run.records)} records\n"
    wrong = runs.command(capsys, "export", "nothing", "-o", toy_run.output)
    assert "latex, csv, hub, onnx or toy" in wrong.error

"""Retrieval against the official numbers and a ranking that is walked through one image at a time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from layerboard.benchmark.passes.loading import Batch, Loader
from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.revisitop import Retrieval, RevisitedEntry
from layerboard.tasks.framework.protocols import STANDARD, find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.retrieval.landmarks import RetrievalTask
from layerboard.zoo.view.views import FitLongSide
from tests.benchmark.doubles import MemorySample
from tests.fakes import write_fake_revisited

Floats = NDArray[np.float32]
RULE = config_of(STANDARD, "retrieval")
EASY, HARD, JUNK = 1, 2, 3


def problem(relevance: NDArray[np.int64]) -> RetrievalTask:
    """In memory, from a kind (0: negative) for each [database image, query]."""
    lists = {
        kind: tuple(np.flatnonzero(column == kind) for column in relevance.T) for kind in (EASY, HARD, JUNK)
    }
    database, queries = (
        tuple(MemorySample(f"{mark}{index}", 0) for index in range(count))
        for mark, count in zip("dq", relevance.shape, strict=True)
    )
    return RetrievalTask(
        Retrieval("double", database, queries, lists[EASY], lists[HARD], lists[JUNK], Coverage(())), RULE
    )


def vectors(task: RetrievalTask, database: Floats, queries: Floats) -> dict[str, Floats]:
    return dict(zip([source.name for source in task.sources], (database, queries), strict=True))


def test_a_difficulty_without_positives_has_no_score() -> None:
    relevance = np.zeros((6, 2), np.int64)
    relevance[0], relevance[1] = EASY, JUNK
    task, rng = problem(relevance), np.random.default_rng(0)
    database, queries = rng.normal(size=(6, 4)), rng.normal(size=(2, 4))
    outcome = task.score(vectors(task, database.astype(np.float32), queries.astype(np.float32)))
    assert {score.metric.split()[-1] for score in outcome.scores} == {"easy", "medium"}


def test_the_boxes_of_queries_reach_the_view(tmp_path: Path) -> None:
    folder = write_fake_revisited(tmp_path)
    task = RetrievalTask(RevisitedEntry("mini", "roxford5k", 8, 2).read(tmp_path), RULE)
    view = RULE.view.scaled(32, 8)
    assert (RULE.view, view) == (FitLongSide(224), FitLongSide(32, 8))
    crops = {"queries": (4, 3, 44, 33), "database": (0, 0, 48, 36)}
    for source in task.sources:
        crop = crops[source.name.split("/")[1]]
        found = [
            pixels
            for event in Loader(1).batches(replace(source, view=view), range(len(source.groups)), 4, 32)
            if isinstance(event, Batch)
            for pixels in event.pixels
        ]
        for sample, pixels in zip(source.samples, found, strict=True):
            name = sample.key.removeprefix("query/")
            with Image.open(folder / "jpg" / f"{name}.jpg") as image:
                shown = image.convert("RGB").crop(crop).resize((32, 24), Image.Resampling.BICUBIC)
            assert (pixels.permute(1, 2, 0) == torch.from_numpy(np.array(shown))).all()


def test_sources_keep_the_order_of_the_ground_truth() -> None:
    task = problem(np.zeros((600, 3), np.int64))
    database, queries = task.sources
    assert [len(group.samples) for group in database.groups] == [256, 256, 88]
    assert database.samples == task.data.database
    assert queries.samples == task.data.queries
    assert not database.skip_unreadable  # an absent image would change the ground truth


def test_dinov3_shows_whole_queries_on_a_black_square(tmp_path: Path) -> None:
    folder = write_fake_revisited(tmp_path)
    rule = config_of(find_protocol("dinov3"), "retrieval")
    task = RetrievalTask(RevisitedEntry("mini", "roxford5k", 8, 2).read(tmp_path), rule)
    view = rule.view.scaled(32, 8)
    for source in task.sources:
        for sample in source.samples:
            with Image.open(folder / "jpg" / f"{sample.key.removeprefix('query/')}.jpg") as image:
                shown = image.convert("RGB").resize((32, 24), Image.Resampling.BICUBIC)
                square = Image.new("RGB", (32, 32))
                square.paste(shown, (0, 4))
                (pixels,) = view.render(image.convert("RGB"), sample.box)
            assert (pixels.permute(1, 2, 0) == torch.from_numpy(np.array(square))).all()

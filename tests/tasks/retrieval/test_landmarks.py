"""Retrieval of landmarks: what is shown of an image, and which queries count."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from layerboard.benchmark.passes.loading import Batch, Loader
from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.revisitop import Retrieval, RevisitedEntry
from layerboard.tasks.framework.protocols import STANDARD, find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.retrieval.landmarks import RetrievalTask
from tests.benchmark.doubles import MemorySample
from tests.fakes import write_fake_revisited
from tests.zoo.view.test_views import centre_square, shrunk

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


def cropped(image: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    return image.crop(box).resize((32, 24), Image.Resampling.BICUBIC)


def shrunk_first(image: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    return Image.fromarray(centre_square(shrunk(image, 32), 32))


def on_a_black_square(image: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    square = Image.new("RGB", (32, 32))
    square.paste(image.resize((32, 24), Image.Resampling.BICUBIC), (0, 4))
    return square


@pytest.mark.parametrize(
    ("protocol", "size", "shown"),
    [
        ("standard", (48, 36), cropped),
        ("paper", (130, 97), shrunk_first),
        ("dinov3", (48, 36), on_a_black_square),
    ],
)
def test_what_is_shown_of_queries_and_of_the_database(
    tmp_path: Path, protocol: str, size: tuple[int, int], shown: Any
) -> None:
    """The box of a query reaches the view, unless the protocol looks at whole images."""
    folder = write_fake_revisited(tmp_path, size=size)
    rule = config_of(find_protocol(protocol), "retrieval")
    task = RetrievalTask(RevisitedEntry("mini", "roxford5k", 8, 2).read(tmp_path), rule)
    assert all(query.box is not None for query in task.data.queries)
    boxes = {"queries": (4, 3, 44, 33), "database": (0, 0, *size)}
    for source in task.sources:
        scaled = replace(source, view=rule.view.scaled(32, 8))
        events = Loader(1).batches(scaled, range(len(source.groups)), 4, 32)
        found = [pixels for event in events if isinstance(event, Batch) for pixels in event.pixels]
        for sample, pixels in zip(source.samples, found, strict=True):
            with Image.open(folder / "jpg" / f"{sample.key.removeprefix('query/')}.jpg") as image:
                expected = shown(image.convert("RGB"), boxes[source.name.split("/")[1]])
            assert (pixels.permute(1, 2, 0) == torch.from_numpy(np.array(expected))).all()


def test_sources_keep_the_order_of_the_ground_truth() -> None:
    task = problem(np.zeros((600, 3), np.int64))
    database, queries = task.sources
    assert [len(group.samples) for group in database.groups] == [256, 256, 88]
    assert database.samples == task.data.database
    assert queries.samples == task.data.queries
    assert not database.skip_unreadable  # an absent image would change the ground truth

"""Propagation, fed batch by batch, against whole videos, dense affinities and boundaries pixel by pixel."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.davis import DavisEntry, Video, Videos
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.framework.base import Group
from layerboard.tasks.framework.protocols import PAPER, STANDARD, find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.cell_labels import area_labels
from layerboard.tasks.propagation.config import PropagationConfig
from layerboard.tasks.propagation.j_and_f import score_video
from layerboard.tasks.propagation.metric import decode, seed_labels
from layerboard.tasks.propagation.task import PropagationTask
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.released import NativeSquare
from layerboard.zoo.view.views import View, WholeFrame
from tests.benchmark.doubles import MemorySample
from tests.fakes import write_fake_davis
from tests.tasks import passes
from tests.tasks.propagation.official_davis import dilated_by_scipy, official_scores
from tests.tasks.propagation.test_metric import Obvious
from tests.tasks.standard import heard_by
from workshop.render.masks import write_mask

RULE = config_of(STANDARD, "davis")
VIEW = WholeFrame(short=480)
VIEW_32 = VIEW.scaled(32, 8)
SHORT = replace(RULE, n_last_frames=2, radius=4)
Masks = list[NDArray[np.uint8]]


@pytest.fixture
def davis(tmp_path: Path) -> Videos:
    write_fake_davis(tmp_path, sequences=2, frames=7)
    return DavisEntry(sequences=2, frames=14, objects=4).read(tmp_path)


def grid_size(video: Video, view: View = VIEW_32) -> tuple[int, int]:
    width, height = view.geometry(video.size).size
    return height // 8, width // 8


def random_grids(video: Video, seed: int, view: View = VIEW_32) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    still = torch.randn(*grid_size(video, view), 6, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(video.frames), *still.shape, generator=generator, dtype=torch.float64)
    return still + 0.7 * noise


def measured(
    task: PropagationTask, number: int, layers: dict[Layer, Tensor], batch: int, view: View = VIEW_32
) -> dict[Layer, dict[str, NDArray[Any]]]:
    """What the pass leaves behind of one video."""
    group = task.source.groups[number]
    keys = [sample.key for sample in group.samples]
    named = {layer: dict(zip(keys, grids, strict=True)) for layer, grids in layers.items()}
    return passes.measured_group(task, group, named, batch, view)[0]


def labels_of(video: Video) -> Masks:
    masks = [read_mask(path) for path in video.masks]
    return [np.where(mask == 255, np.uint8(0), mask) for mask in masks]


def obvious_scores(video: Video, grids: Tensor, rule: PropagationConfig) -> NDArray[np.float64]:
    """J and F [2 objects frames] of whole videos, with dense affinities; what vanishes is nowhere."""
    truths, (height, width, _) = labels_of(video), grids[0].shape
    seed = np.array(Image.fromarray(truths[0]).resize((width, height), Image.Resampling.NEAREST))
    first = torch.eye(1 + int(seed.max()), dtype=torch.float64)[torch.from_numpy(seed).long()]
    propagator = Obvious(grids[0], first, **heard_by(rule))
    steps = [obvious_decode(propagator.step(grid), video.size) for grid in grids[1:-1]]
    predictions = [truths[0], *steps, truths[-1]]
    return official_scores(predictions, truths, int(truths[0].max()), dilated_by_scipy)


def obvious_decode(soft: Tensor, size: tuple[int, int]) -> NDArray[np.uint8]:
    height, width, channels = soft.shape
    large = torch.nn.functional.interpolate(
        soft.permute(2, 0, 1)[None], size=(8 * height, 8 * width), mode="bilinear", align_corners=False
    )[0].numpy()
    for channel in range(channels):
        if large[channel].max() > 0:
            low, high = large[channel].min(), large[channel].max()
            large[channel] = (large[channel] - low) / (high - low)
    ids = Image.fromarray(large.argmax(axis=0).astype(np.uint8))
    return np.asarray(ids.resize(size, Image.Resampling.NEAREST))


SQUARES = config_of(find_protocol("paper-squares"), "davis")


@pytest.mark.parametrize(
    "rule",
    [
        replace(SQUARES, keep_vanished=True),
        RULE,
        replace(RULE, n_last_frames=3, topk=2, radius=1, temperature=0.3),
        replace(SHORT, circle=True),
    ],
)
def test_equals_the_obvious_protocol(davis: Videos, rule: PropagationConfig) -> None:
    task, view = PropagationTask(davis, rule), rule.view.scaled(32, 8)
    for number, video in enumerate(davis.videos):
        grids = random_grids(video, number, view)
        assert view != SQUARES.view.scaled(32, 8) or grids.shape[1:3] == (4, 4)  # whatever the frame
        found = measured(task, number, {Layer(1): grids}, 3, view)[Layer(1)]
        np.testing.assert_allclose([found["J"], found["F"]], obvious_scores(video, grids, rule))


@pytest.mark.parametrize("numbers", [(1, 3, 2), (2, 1, 3)])
def test_propagation_by_tiles_loses_an_object_that_vanishes_and_rounds_its_means(
    tmp_path: Path, numbers: tuple[int, int, int]
) -> None:
    """Two large objects and a third of one row, which no token's middle falls on, by the paper's protocol."""
    masks = [np.zeros((32, 48), np.uint8) for _ in range(6)]
    for frame, mask in enumerate(masks):
        mask[3:18, 6 + frame : 24 + frame] = numbers[0]
        mask[19:31, 30 - frame : 44 - frame] = numbers[1]
        mask[1, 4:40] = numbers[2]
    rule = config_of(PAPER, "davis")
    task = PropagationTask(drawn(tmp_path, masks), rule)
    view, (video,) = rule.view.scaled(32, 8), task.data.videos
    assert grid_size(video, view) == (8, 12)
    grids = random_grids(video, 0, view)
    left = measured(task, 0, {Layer(1): grids}, 4, view)[Layer(1)]
    scores = obvious_scores(video, grids, rule)
    np.testing.assert_allclose([left["J"], left["F"]], scores)
    assert (scores[:, numbers[2] - 1] == 0).all()
    j, f = 100 * scores.mean(axis=(1, 2))
    exact, outcome = [(j + f) / 2, j, f], task.score([left])
    assert [score.value for score in outcome.scores[:3]] == pytest.approx([round(v, 1) for v in exact])
    assert outcome.items is not None
    assert [outcome.items.values[m].mean() for m in ("J&F", "J", "F")] == pytest.approx(exact)


TABLE_5 = config_of(find_protocol("dinov3-480"), "davis")
PE = config_of(find_protocol("pe"), "davis")


def test_the_numbers_are_those_of_the_sources() -> None:
    """What a source says is fixed; what it does not say has the values of the others that it cites."""
    fields = ("topk", "radius", "circle", "temperature", "decoding")
    said = {
        rule: [tuple(getattr(each, name) for name in fields) for each in rule.settings]
        for rule in (TABLE_5, PE)
    }
    assert set(said[TABLE_5]) == {
        (5, 12, circle, temperature, decoding)
        for circle in (True, False)
        for temperature in (0.1, 0.2)
        for decoding in ("frame", "frame unscaled")
    }
    assert said[TABLE_5][0] == (5, 12, True, 0.2, "frame")
    assert len(said[TABLE_5]) == 8
    assert said[PE] == [(5, 12, False, 0.1, "patches"), (10, 11.99, True, 0.05, "frame unscaled")]
    assert config_of(find_protocol("pe-squares"), "davis").others[0].view == NativeSquare(448)
    for name in ("standard", "paper", "paper-squares", "dino", "dinov3"):
        assert config_of(find_protocol(name), "davis").others == ()


@pytest.mark.parametrize("rule", [TABLE_5, PE])
def test_open_settings_are_scored_as_each_alone_would_be(davis: Videos, rule: PropagationConfig) -> None:
    """The ends are the lowest and the highest mean; the score itself is by the first answers."""

    davis = replace(davis, videos=davis.videos[:1])

    def scores(config: PropagationConfig) -> dict[str, float]:
        task = PropagationTask(davis, config)
        outcome = task.score([measured(task, 0, {Layer(1): random_grids(davis.videos[0], 0)}, 3)[Layer(1)]])
        assert outcome.items is not None
        means = {name: values.mean() for name, values in outcome.items.values.items()}
        assert means == pytest.approx({score.metric: score.value for score in outcome.scores})
        return {score.metric: score.value for score in outcome.scores}

    found = scores(rule)
    alone = [scores(replace(each, others=())) for each in rule.settings]
    assert found == alone[0] | {"J&F lowest": found["J&F lowest"], "J&F highest": found["J&F highest"]}
    each = [one["J&F"] for one in alone]
    assert (found["J&F lowest"], found["J&F highest"]) == (min(each), max(each))
    assert found["J&F lowest"] < found["J&F highest"]
    assert "J&F lowest" not in alone[0]


def test_the_first_and_the_last_frame_are_not_scored(davis: Videos) -> None:
    task = PropagationTask(davis, RULE)
    video = davis.videos[0]
    grids = random_grids(video, 0)
    before = measured(task, 0, {Layer(0): grids}, 2)[Layer(0)]
    assert before["J"].shape == before["F"].shape == (2, 5)
    assert before["J"].dtype == np.float64
    # neither the features nor the annotation of the last frame are looked at
    grids[-1] = torch.nan
    video.masks[-1].write_bytes(b"broken")
    after = measured(task, 0, {Layer(0): grids}, 2)[Layer(0)]
    np.testing.assert_array_equal(after["J"], before["J"])


def test_scores_are_means_over_objects_not_over_videos() -> None:
    sizes = {"a": 1, "b": 3}
    videos = tuple(Video(name, (), (), (9, 9)) for name in sizes)
    rng = np.random.default_rng(0)
    varies = np.array([True])
    left = [{"J": rng.random((n, 5)), "F": rng.random((n, 5)), "varies": varies} for n in sizes.values()]
    outcome = PropagationTask(Videos("double", videos, Coverage(())), RULE).score(left)
    j, f = (100 * np.mean([row.mean() for one in left for row in one[name]]) for name in "JF")
    assert [(s.metric, s.n, s.unit) for s in outcome.scores] == [
        (name, 4, "objects") for name in ("J&F", "J", "F")
    ]
    assert [score.value for score in outcome.scores] == pytest.approx([(j + f) / 2, j, f])
    assert outcome.items is not None
    assert outcome.items.keys == ("a_1", "b_1", "b_2", "b_3")
    assert outcome.items.clusters == ("a", "b", "b", "b")  # videos were sampled, not objects
    np.testing.assert_allclose(outcome.items.values["J"][2], 100 * left[1]["J"][1].mean())


def drawn(folder: Path, masks: Masks) -> Videos:
    """A video in memory with those annotations."""
    folder.mkdir(exist_ok=True)
    paths = tuple(folder / f"{index:05d}.png" for index in range(len(masks)))
    for path, mask in zip(paths, masks, strict=True):
        write_mask(path, mask)
    frames = tuple(MemorySample(path.stem, 0) for path in paths)
    video = Video(folder.name, frames, paths, (masks[0].shape[1], masks[0].shape[0]))
    return Videos("double", (video,), Coverage(()))


@pytest.mark.parametrize("frames", [1, 2])
def test_a_video_without_a_scored_frame_does_not_count(tmp_path: Path, frames: int) -> None:
    mask = np.zeros((32, 48), np.uint8)
    mask[4:20, 8:30] = 1
    short, long = (drawn(tmp_path / name, [mask] * count) for name, count in (("s", frames), ("l", 3)))
    both = PropagationTask(Videos("double", short.videos + long.videos, Coverage(())), RULE)
    kept = [
        measured(both, number, {Layer(0): torch.rand(len(video.frames), 9, 14, 4)}, 2)[Layer(0)]
        for number, video in enumerate(both.data.videos)
    ]
    assert kept[0]["J"].shape == (1, 0)
    outcome = both.score(kept)
    assert outcome.scores[0].n == 1
    assert outcome.scores[1].value == pytest.approx(100 * kept[1]["J"].mean())


def test_the_host_never_waits_in_tiles(davis: Videos) -> None:
    """On the meta device, where every value that is asked for is an error; smaller grids are not cut."""
    size = 30, 40
    video = davis.videos[0]
    measurer = PropagationTask(davis, RULE).measure(Group(video.name, video.frames), VIEW_32)
    grids = torch.zeros(len(video.frames), *size, 6, device="meta")
    for positions in (range(3), range(3, 7)):
        for layer in (Layer(0), Layer(1)):
            measurer.update(layer, positions, grids[positions.start : positions.stop])
    kept = measurer.finish(Layer(0))
    assert kept["soft"].shape == (5, 1, *size, 3)
    assert {array.device.type for array in kept.values()} == {"meta"}


def ideal(video: Video, rule: PropagationConfig, scale: int) -> dict[str, float]:
    """Ceilings of one video of frames whose sides are multiples of 8 cells of that many pixels."""
    task = PropagationTask(Videos("planted", (video,), Coverage(())), rule)
    grids = torch.randn(len(video.frames), 12, 16, 4, generator=torch.Generator().manual_seed(0))
    kept = measured(task, 0, {Layer(1): grids}, 3, WholeFrame(12 * scale, scale))
    return {one.metric: one.value for one in task.score([kept[Layer(1)]]).scores}


def planted(folder: Path, patch: int, box: tuple[int, int, int, int]) -> Video:
    """Three frames with one box, given by its first and last rows and columns."""
    size = (16 * patch, 12 * patch)
    mask = np.zeros(size[::-1], np.uint8)
    mask[box[0] : box[1], box[2] : box[3]] = 1
    paths = tuple(folder / f"{number}.png" for number in range(3))
    for path in paths:
        write_mask(path, mask)
    frames = tuple(MemorySample(f"planted/{number}", number, size) for number in range(3))
    return Video("planted", frames, paths, size)


NEAREST = replace(RULE, decoding="nearest", every_channel=True)


@pytest.mark.parametrize(("patch", "lost"), [(8, 6), (14, 19), (16, 23)])
def test_a_box_on_the_borders_of_tokens_loses_its_corners_alone(
    tmp_path: Path, patch: int, lost: int
) -> None:
    """J = 1 - 4 lost / area by bilinear decoding, of 3 x 4 tokens; by nearest decoding all is as it was."""
    video = planted(tmp_path, patch, (3 * patch, 6 * patch, 4 * patch, 8 * patch))
    j = 1 - 4 * lost / (12 * patch * patch)
    assert j == pytest.approx({8: 0.96875, 14: 0.96769, 16: 0.97005}[patch], abs=5e-6)
    mask = read_mask(video.masks[0])
    for labels in (seed_labels(mask, (12, 16), keep_vanished=True), area_labels(mask, (12, 16), 2)):
        assert score_video([decode(labels, video.size, patch)] * 3, [mask] * 3).j[0, 0] == pytest.approx(j)
    found = ideal(video, RULE, patch)
    assert found["J&F ceiling"] == found["J&F ceiling by area"] < 100
    found = ideal(video, NEAREST, patch)
    assert found["J&F ceiling"] == found["J&F ceiling by area"] == 100


def test_an_object_below_a_token_is_nothing_by_its_seed_and_something_by_its_area(tmp_path: Path) -> None:
    """No token's centre lies in it: the rule that lets objects vanish loses it, exact shares do not."""
    video = planted(tmp_path, 16, (33, 38, 33, 39))
    found = ideal(video, replace(RULE, keep_vanished=False), 16)
    assert found["J&F ceiling"] == 0
    assert 0 < found["J&F ceiling by area"] < 60
    rescued = ideal(video, RULE, 16)
    assert rescued["J&F ceiling"] == pytest.approx(100 * (0.117021277 + 0.43566879) / 2, abs=1e-6)

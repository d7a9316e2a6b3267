"""Batches hold every image once, in order, by size, and say what could not be read."""

import time
from dataclasses import replace

import pytest
import torch
from PIL import Image

from layerboard.benchmark.passes.loading import Batch, KeptViews, Loader, ShardEnd, Unreadable, render_sample
from layerboard.zoo.view.views import FitLongSide, Stretch, Tiles
from tests.benchmark.doubles import MemorySample, source


def run(src, view=None, batch_size=4, workers=2, shards=None, input_size=32):  # type: ignore[no-untyped-def]
    shards = range(src.shards) if shards is None else shards
    return list(Loader(workers).batches(replace(src, view=view or src.view), shards, batch_size, input_size))


def members(events: list[object]) -> list[tuple[int, int]]:
    return [(m.group, m.position) for e in events if isinstance(e, Batch) for m in e.members]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_every_image_once_and_in_order(batch_size: int, workers: int) -> None:
    src = source([[1, 2, 3], [4, 5], [6, 7, 8, 9]], per_shard=2)
    events = run(src, batch_size=batch_size, workers=workers)
    expected = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3)]
    assert members(events) == expected
    assert [e.shard for e in events if isinstance(e, ShardEnd)] == [0, 1]
    assert isinstance(events[-1], ShardEnd)


def test_pixels_belong_to_their_members() -> None:
    src = source([[10, 20, 30]])
    (batch, _) = run(src, batch_size=8)
    assert [int(image[0, 0, 0]) for image in batch.pixels] == [10, 20, 30]
    assert batch.pixels.dtype == torch.uint8


def test_a_joint_group_is_one_batch_whatever_the_batch_size() -> None:
    src = source([[1, 2, 3, 4, 5], [6, 7]], joint=True)
    sizes = [len(e.members) for e in run(src, batch_size=2) if isinstance(e, Batch)]
    assert sizes == [5, 2]


def test_only_the_shards_that_were_asked_for() -> None:
    src = source([[1], [2], [3]])
    assert members(run(src, shards=[2])) == [(2, 0)]


def test_unreadable_images_are_named_and_the_rest_goes_on() -> None:
    src = source([[1, -1, 3], [-1]])
    events = run(src)
    assert members(events) == [(0, 0), (0, 2)]
    assert [(e.group, e.position) for e in events if isinstance(e, Unreadable)] == [(0, 1), (1, 0)]
    assert [e.shard for e in events if isinstance(e, ShardEnd)] == [0, 1]


def test_images_of_one_size_share_a_batch() -> None:
    src = source([[1, 2, 3, 4]])
    wide = MemorySample("wide", 9, (64, 32))
    samples = (src.groups[0].samples[0], wide, *src.groups[0].samples[2:])
    object.__setattr__(src.groups[0], "samples", samples)
    events = run(src, view=FitLongSide(32, 8), batch_size=16)
    shapes = sorted((tuple(e.pixels.shape) for e in events if isinstance(e, Batch)), reverse=True)
    assert shapes == [(3, 3, 32, 32), (1, 3, 16, 32)]


def test_larger_images_come_in_smaller_batches() -> None:
    src = source([[1] * 8], size=(64, 64))
    view = FitLongSide(64, 8)
    sizes = [len(e.members) for e in run(src, view=view, batch_size=8, input_size=32) if isinstance(e, Batch)]
    assert sizes == [2, 2, 2, 2]


def test_tiles_of_an_image_stay_together() -> None:
    src = source([[1], [2], [3]], per_shard=3, size=(96, 64))
    view = Tiles(64, 32, 8)
    events = [e for e in run(src, view=view, batch_size=8) if isinstance(e, Batch)]
    assert [[m.tiles for m in e.members] for e in events] == [[6, 6], [6]]
    assert events[0].pixels.shape == (12, 3, 32, 32)
    assert events[0].members[0].size == (96, 64)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the images that were opened."""
    names: list[str] = []
    open_image = MemorySample.open

    def noted(sample: MemorySample) -> Image.Image:
        names.append(sample.key)
        return open_image(sample)

    monkeypatch.setattr(MemorySample, "open", noted)
    return names


def test_the_next_batch_is_made_while_one_is_looked_at_and_few_images_are_decoded_ahead(
    opened: list[str],
) -> None:
    events = Loader(2).batches(source([[1] * 40]), [0], 4, 32)
    next(events)
    end = time.monotonic() + 10
    while len(opened) < 15 and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(0.02)
    assert len(opened) == 15  # of the batch, of the next, and of two that follow, but for one image
    events.close()  # type: ignore[attr-defined]
    assert len(opened) < 40


def test_a_kept_view_is_not_rendered_again(opened: list[str]) -> None:
    kept, sample, view = KeptViews(2**20), MemorySample("a", 9, (64, 32)), Tiles(64, 32, 8)
    first, again = (kept.render(sample, view) for _ in range(2))
    assert opened == ["a"]
    assert again is first
    pixels, size = render_sample(sample, view)
    assert torch.equal(first[0], pixels)
    assert first[1] == size == (128, 64)
    kept.render(sample, Stretch(32))  # another view
    kept.render(MemorySample("b", 9), view)
    kept.render(MemorySample("a", 8, (64, 32)), view)  # another image of the same name
    assert opened == ["a", "a", "a", "b", "a"]


def test_views_are_kept_while_they_fit_and_none_makes_room(opened: list[str]) -> None:
    kept, view = KeptViews(most=2 * 3 * 8 * 8), Stretch(8)
    for name in "abcabc":
        kept.render(MemorySample(name, 1), view)
    assert opened == ["a", "b", "c", "c"]


def test_batches_of_kept_views_are_the_same(opened: list[str]) -> None:
    src, loader = source([[1, 2, -1], [4, 5]]), Loader(2, KeptViews(2**20).render)
    plain = run(src)
    for _ in range(2):
        events = [*loader.batches(src, [0, 1], 4, 32)]
        assert members(events) == members(plain)
        assert [type(event) for event in events] == [type(event) for event in plain]
        for one, other in zip(events, plain, strict=True):
            assert not isinstance(one, Batch) or torch.equal(one.pixels, other.pixels)
    assert len(opened) == 5 + 5 + 1  # without the loader, with it, and the unreadable one again

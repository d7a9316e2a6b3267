"""A batch that does not fit into memory is shown in smaller ones, and no layer of an image twice."""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.benchmark.passes.collectors import MeasuredCollector
from layerboard.benchmark.passes.loading import Loader
from layerboard.benchmark.passes.one_pass import Listener, run_pass
from layerboard.benchmark.passes.shards import Shards
from layerboard.tasks.framework.base import Source
from layerboard.tasks.framework.feeds import GRIDS
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import Shown, Visitor
from layerboard.zoo.features.pass_context import is_out_of_memory
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import FastResized, Tiles, View
from tests.benchmark.doubles import CountingBackbone, source
from tests.benchmark.engines.test_progress import Heard
from tests.benchmark.passes.test_one_pass import MeanMeasurer, MeanProblem, listeners

ERRORS = (
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried"),
    MemoryError(),
)


class Small(CountingBackbone):
    """A backbone that can take so many images at once; it shows layers before it finds out."""

    def __init__(self, room: int, error: Exception, after: int = 2) -> None:
        super().__init__()
        self.room, self.error, self.after = room, error, after

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        shown = 0

        def show(layer: Shown) -> None:
            nonlocal shown
            if len(pixels) > self.room and shown == self.after:
                raise self.error
            shown += 1
            visitor(layer)

        super().visit(pixels, show, layers)
        if len(pixels) > self.room:
            raise self.error


Stored = list[dict[str, NDArray[np.float32]]]


def run(src: Source, found: list[Listener], backbone: CountingBackbone, batch_size: int = 8) -> list[str]:
    """Lines that the pass says."""
    heard = Heard()
    run_pass(src, found, backbone, batch_size, Loader(2), heard)
    assert heard.done["double  double/source"] == len(src.samples)
    return [line for line, done in heard.done.items() if done < 0]


def arrays(found: list[Listener]) -> Stored:
    """Everything that a pass has stored."""
    assert all(one.failure is None and not one.missing for one in found)
    return [one.store.arrays(shard) for one in found for shard in range(one.store.count)]


def same(first: Stored, second: Stored) -> bool:
    def equal(one: dict[str, NDArray[np.float32]], other: dict[str, NDArray[np.float32]]) -> bool:
        named = list(one) == list(other)
        return named and all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)

    return len(first) == len(second) and all(map(equal, first, second))


COLOURS = [[1, 2, 3], [4, 5, 6, 7], [8], [9, 10, 11, 12, 13], [14, 15, 16]]


@pytest.mark.parametrize(
    ("room", "after", "error"),
    [(1, 0, ERRORS[0]), (1, 3, ERRORS[1]), (3, 1, ERRORS[2]), (5, 4, ERRORS[0]), (7, 9, ERRORS[1])],
)
def test_a_batch_is_halved_until_it_fits(tmp_path: Path, error: Exception, room: int, after: int) -> None:
    src = source(COLOURS, per_shard=4)
    whole, halved = listeners(src, tmp_path / "whole"), listeners(src, tmp_path / "halved")
    assert run(src, whole, CountingBackbone()) == []
    lines = run(src, halved, Small(room, error, after))
    assert same(arrays(whole), arrays(halved))
    assert len(lines) == 1
    assert lines[0].startswith("double: 8 images at once do not fit into the memory of cpu")


def test_batches_after_it_are_small_from_the_start(tmp_path: Path) -> None:
    src = source([list(range(16))])
    backbone = Small(2, ERRORS[0])
    run(src, listeners(src, tmp_path), backbone)
    assert [size for size in backbone.batches if size > backbone.room] == [8, 4]


@pytest.mark.parametrize("view", [Tiles(64, 32, 8), FastResized(Tiles(64, 32, 8))], ids=repr)
def test_tiles_of_an_image_stay_together(tmp_path: Path, view: View) -> None:
    src = source([[10, 11], [20, 21, 22]], view=view, per_shard=2, size=(96, 64))
    whole, halved = (
        listeners(src, tmp_path / "whole", True)[1:],
        listeners(src, tmp_path / "halved", True)[1:],
    )
    run(src, whole, CountingBackbone(), 30)
    backbone = Small(6, ERRORS[0])
    run(src, halved, backbone, 30)
    assert same(arrays(whole), arrays(halved))
    assert set(backbone.batches[1:]) <= {6, 12, 18}


class PairFeed:
    """What is measured by two layers."""

    def __getattr__(self, name: str) -> object:
        return getattr(GRIDS, name)

    def shown(self, layer: Layer) -> tuple[Layer, ...]:
        return layer, Layer(layer.index + 1)

    def portion(self, waiting: list[Shown], part: object) -> Tensor:
        first, second = (GRIDS.portion([one], part) for one in waiting)  # type: ignore[arg-type]
        return first + second


def test_what_waits_for_another_layer_is_shown_again(tmp_path: Path) -> None:
    src = source(COLOURS, per_shard=4)
    problem = MeanProblem(src)
    problem.feed = PairFeed()  # type: ignore[assignment]

    def listener(folder: Path) -> list[Listener]:
        collector = MeasuredCollector(problem, src, frozenset([Layer(2)]))
        return [Listener("pairs", collector, Shards(folder, 2), {0, 1})]

    whole, halved = listener(tmp_path / "whole"), listener(tmp_path / "halved")
    run(src, whole, CountingBackbone())
    run(src, halved, Small(3, ERRORS[0], after=1))
    assert same(arrays(whole), arrays(halved))


@pytest.mark.parametrize(
    ("joint", "words"), [(False, "one image .* does not fit"), (True, "3 images that must .* does not help")]
)
def test_what_cannot_be_halved_is_a_sentence(tmp_path: Path, joint: bool, words: str) -> None:
    src = source([[1, 2, 3]], joint=joint)
    with pytest.raises(InputError, match=words):
        run(src, listeners(src, tmp_path), Small(0, ERRORS[1]))


def test_a_measurer_without_memory_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    src = source([[1, 2], [3]])

    class Greedy(MeanMeasurer):
        def update(self, layer: Layer, positions, grids) -> None:  # type: ignore[no-untyped-def]
            raise ERRORS[1]

    found = listeners(src, tmp_path)
    found[1].collector = MeasuredCollector(MeanProblem(src, Greedy), src, frozenset([Layer(1)]))
    run(src, found, CountingBackbone())
    assert found[0].failure is None
    assert isinstance(found[1].failure, InputError)
    assert "took more memory than there is" in str(found[1].failure)


def test_a_listener_without_memory_for_one_image_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def see(*_: object) -> None:
        raise ERRORS[0]

    src = source(COLOURS, per_shard=4)
    found = listeners(src, tmp_path)
    monkeypatch.setattr("layerboard.benchmark.passes.collectors.VectorCollector.see", see)
    run(src, found, CountingBackbone())
    assert "one image (1 x 32 x 32 pixels) does not fit" in str(found[0].failure)
    assert (found[1].failure, found[1].missing) == (None, set())


def test_other_errors_are_not_taken_for_it() -> None:
    assert not any(
        map(is_out_of_memory, (RuntimeError("shapes differ"), ValueError("out of memory"), OSError()))
    )
    assert all(map(is_out_of_memory, ERRORS))

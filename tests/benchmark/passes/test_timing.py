"""The measurement of cost, with a clock that a forward moves by as much as is planted."""

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from layerboard.benchmark.passes import timing
from layerboard.benchmark.passes.timing import Stopwatch, best_batch, measure_cost
from layerboard.tasks.analyses.cost import CostConfig
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures, Visitor
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.geometry import ViewSize
from tests.benchmark.doubles import CountingBackbone

RULE = CostConfig(
    warm_up=2, rounds=5, single_seconds=0.0, most_rounds=9, gain=1.03, images=10_000, seconds=1000.0, visits=2
)


class Clocked(CountingBackbone):
    """Each layer takes ``cost(batch)`` seconds of a clock that nothing else moves; batches may not fit."""

    def __init__(self, cost: Callable[[int], float], fits: int = 1 << 30) -> None:
        super().__init__()
        self.now, self._cost, self._fits = 0.0, cost, fits

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        if len(pixels) > self._fits:
            raise torch.OutOfMemoryError
        self.batches.append(len(pixels))

        def show(shown: LayerFeatures) -> None:
            self.now += self._cost(len(pixels))
            visitor(shown)

        CountingBackbone.visit(self, pixels, show, layers)  # type: ignore[arg-type]
        self.batches.pop()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def measure(backbone: Clocked, rule: CostConfig = RULE, sizes=(), former=None):  # type: ignore[no-untyped-def]
        monkeypatch.setattr(timing, "perf_counter", lambda: backbone.now)
        return measure_cost(backbone, rule, sizes, former)

    return measure


def test_times_are_from_the_start_of_a_forward_to_each_layer(measured) -> None:  # type: ignore[no-untyped-def]
    found = measured(Clocked(lambda batch: 0.25, fits=8))
    (first, *_) = found.batches
    assert [[*seconds] for seconds in first.seconds.values()] == [[0.25 * n] * 5 for n in (1, 2, 3, 4)]
    assert list(first.seconds) == [Layer(1), Layer(2), Layer(3), Layer(3, "final")]
    assert found.dims[Layer(3, "final")] == 8


def test_batches_grow_until_that_does_not_pay(measured) -> None:  # type: ignore[no-untyped-def]
    """Up to 8 images cost as much as one, so that 8 is the best, and two larger batches are tried."""
    backbone = Clocked(lambda batch: max(1, batch / 8))
    found = measured(backbone)
    assert [one.batch for one in found.batches] == [1, 2, 4, 8, 16, 32]
    assert found.best.batch == 8
    assert found.best.rate == pytest.approx(8 / 4)
    assert backbone.batches.count(8) == 5 + 1  # rounds, memory


def test_one_batch_that_does_not_pay_is_not_the_end(measured) -> None:  # type: ignore[no-untyped-def]
    found = measured(Clocked(lambda batch: {1: 1, 2: 2, 4: 2}.get(batch, batch)))
    assert [one.batch for one in found.batches] == [1, 2, 4, 8, 16]
    assert found.best.batch == 4


def test_a_later_visit_finds_what_other_work_hid_and_says_how_calm_it_was(measured) -> None:  # type: ignore[no-untyped-def]
    """On the first visit every forward takes another, longer time; on the second all take what they need."""
    load = iter(range(1, 10_000))
    first = measured(Clocked(lambda batch: max(1, batch / 4) * next(load)))
    assert first.batches[0].spread > 0.2
    calm = measured(Clocked(lambda batch: max(1, batch / 4)), former=first)
    assert calm.batches[0].whole == calm.best.whole == 4
    assert calm.batches[0].spread == 0
    assert len(calm.batches[0].seconds[Layer(1)]) == 10
    assert (calm.weights, calm.peak) == (first.weights, first.peak)
    busy = measured(Clocked(lambda batch: max(1, batch / 4) * next(load)), former=calm)
    assert busy.batches[0].whole == 4


def test_waiting_for_processors_is_seen(measured, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    backbone = Clocked(lambda batch: 1.0, fits=8)
    monkeypatch.setattr(timing, "_waited", lambda: 0.5 * backbone.now)
    assert measured(backbone).waiting == 0.25
    monkeypatch.setattr(timing, "_waited", lambda: float("nan"))
    assert measured(Clocked(lambda batch: 1.0, fits=8)).reasons["waiting"] == timing.NO_WAITING


@pytest.mark.parametrize(
    ("rule", "last"),
    [({"seconds": 5 * 4 * 3.0 - 1}, 2), ({"images": 5 * 3 - 1}, 2), ({"images": 0, "seconds": 0.0}, 1)],
)
def test_no_batch_is_begun_that_would_take_too_long(measured, rule, last) -> None:  # type: ignore[no-untyped-def]
    """A forward of one image takes 4 s, and so does one of any batch; two of the next are expected."""
    found = measured(Clocked(lambda batch: 1.0), replace(RULE, **rule))
    assert found.batches[-1].batch == last


@pytest.mark.parametrize(
    ("rule", "times"),
    [
        ({"single_seconds": 100.0}, 9),
        ({"single_seconds": 8 * 4.0}, 6),
        ({"seconds": 5 * 4.0}, 3),  # too slow for the least number of passes
    ],
)
def test_one_image_is_timed_as_often_as_fits(measured, rule, times) -> None:  # type: ignore[no-untyped-def]
    found = measured(Clocked(lambda batch: 1.0), replace(RULE, images=0, **rule))
    assert len(found.batches[0].seconds[Layer(1)]) == times


def test_one_image_is_timed_at_each_size_in_turn(measured) -> None:  # type: ignore[no-untyped-def]
    """A double takes twice the side: each image of 24 x 12 pixels has as many patches as four tiles."""
    shown: list[tuple[int, ...]] = []

    class Seen(Clocked):
        def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
            if pixels.shape[-1] == side + 1:  # no multiple of the patch
                raise InputError("no such size")
            shown.append(tuple(pixels.shape))
            Clocked.visit(self, pixels, visitor, layers)

    backbone = Seen(lambda batch: batch)
    side = backbone.spec.input_size
    own, wide = ViewSize(side, side), ViewSize(3 * side, 2 * side)
    tiled, alike = ViewSize(2 * side, 2 * side, side), ViewSize(2 * side, 2 * side - 1, side)
    odd = ViewSize(side + 1, side)
    found = measured(backbone, RULE, [wide, tiled, odd, alike])
    assert [*found.views] == [own, wide, tiled, alike]
    assert [view.timed.whole for view in found.views.values()] == [4, 4, 16, 16]
    assert [view.timed.batch for view in found.views.values()] == [1] * 4
    assert found.views[wide].tokens[Layer(1)] == 6 * found.views[own].tokens[Layer(1)]
    assert found.views[tiled].tokens[Layer(1)] == 4 * found.views[own].tokens[Layer(1)]
    turn = [(1, 3, side, side), (1, 3, 2 * side, 3 * side), (4, 3, side, side)]
    assert shown[:3] == turn  # counted once, also for two sizes of as many tiles
    assert shown.count(turn[1]) == 1 + RULE.warm_up + RULE.rounds
    assert "".join(map(str, turn * RULE.rounds)) in "".join(map(str, shown))
    again = measured(backbone, RULE, former=found)
    assert [*again.views] == [*found.views]
    assert [view.timed.passes for view in again.views.values()] == [2 * RULE.rounds] * 4
    assert again.batches[0].passes == 2 * RULE.rounds


def test_a_batch_that_does_not_fit_is_the_end(measured) -> None:  # type: ignore[no-untyped-def]
    found = measured(Clocked(lambda batch: 1.0, fits=5))
    assert [one.batch for one in found.batches] == [1, 2, 4]
    assert found.best.batch == 4


def test_a_cpu_has_no_largest_batch_and_a_double_no_weights(measured) -> None:  # type: ignore[no-untyped-def]
    found = measured(Clocked(lambda batch: 1.0, fits=2))
    assert found.largest is None
    assert "no largest batch: a CPU" in found.reasons["largest-batch"]
    assert found.reasons["parameters"] == timing.NO_WEIGHTS
    assert found.reasons["gflops"] == timing.NO_OPERATIONS
    assert found.peak is not None  # its tensors are seen


@pytest.mark.parametrize(("fits", "expected"), [(40, 32), (1 << 30, None)])
def test_on_a_card_the_largest_batch_is_the_last_that_fits(
    monkeypatch: pytest.MonkeyPatch, fits: int, expected: int | None
) -> None:
    def forward(clock: object, pixels: int) -> list[float]:
        if pixels > fits:
            raise torch.OutOfMemoryError
        return []

    monkeypatch.setattr(Stopwatch, "forward", forward)
    monkeypatch.setattr(Stopwatch, "pixels", lambda clock, batch, size=None: batch)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    card = CountingBackbone(device=torch.device("cuda"))
    batch, reason = Stopwatch(card, RULE).largest(4)
    assert batch == expected
    assert reason == ("" if expected else "4096 images fit; larger batches were not tried")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (lambda batch: 1.0, 64),  # whatever the batch: 64 images are the first to fill half of the memory
        (lambda batch: max(1, batch / 8), 8),
    ],
)
def test_a_card_says_which_batch_is_fastest_and_keeps_half_of_its_memory(
    monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int], float], expected: int
) -> None:
    shown: list[int] = []

    def forward(clock: Stopwatch, pixels: int) -> list[float]:
        shown.append(pixels)
        return [seconds(pixels)] * len(clock.layers)

    monkeypatch.setattr(Stopwatch, "forward", forward)
    monkeypatch.setattr(Stopwatch, "pixels", lambda clock, batch, size=None: batch)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (128 - shown[-1], 128))
    assert best_batch(CountingBackbone(device=torch.device("cuda")), RULE) == expected
    assert max(shown) <= 64


def test_other_errors_are_not_taken_for_lack_of_memory(measured) -> None:  # type: ignore[no-untyped-def]
    def cost(batch: int) -> float:
        if batch > 1:
            raise ValueError("broken")
        return 1.0

    with pytest.raises(ValueError, match="broken"):
        measured(Clocked(cost))

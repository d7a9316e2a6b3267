"""Planted times and counts have their numbers; what was not measured has its reason."""

from types import SimpleNamespace

import pytest

from layerboard.tasks.analyses.cost import CostConfig, CostTask, MeasuredCosts, Timed, ViewCosts
from layerboard.tasks.framework.base import Findings
from layerboard.zoo.spec import WHOLE_BACKBONE, Layer
from layerboard.zoo.view.geometry import ViewSize

RULE = CostConfig(
    warm_up=1, rounds=3, single_seconds=0, most_rounds=3, gain=1.03, images=100, seconds=1, visits=2
)
FIRST, LAST = Layer(1), Layer(2)
OWN, LARGER = ViewSize(64, 64), ViewSize(184, 136)


def timed(batch: int, first: float, last: float) -> Timed:
    """Five forwards, of which the slow ones are no measure of anything."""
    return Timed(
        batch, {FIRST: [first, 9, first, 9, first], LAST: [last, 9 + last, last * 1.1, 10, last * 1.2]}
    )


def found_of(costs: MeasuredCosts) -> Findings:
    return CostTask(None, RULE).results(SimpleNamespace(costs=lambda config: costs))


def view(**changes) -> ViewCosts:
    usual = {
        "timed": timed(1, 0.002, 0.004),
        "operations": {FIRST: 1_000_000, LAST: 3_000_000},
        "tokens": {FIRST: 64, LAST: 16},
    }
    return ViewCosts(**(usual | changes))


def costs(**changes) -> MeasuredCosts:
    usual = {
        "views": {OWN: view()},
        "batches": (timed(1, 0.002, 0.004), timed(2, 0.003, 0.005), timed(4, 0.007, 0.012)),
        "weights": {FIRST: 10, LAST: 30},
        "dims": {FIRST: 8, LAST: 16},
        "peak": 5000,
        "largest": 64,
    }
    return MeasuredCosts(**(usual | changes))


def values(found: Findings, layer: Layer, size: ViewSize = OWN) -> dict[str, float]:
    (one,) = [one for one in found.outcomes if (one.layer, one.pooling) == (layer, str(size))]
    return {score.metric: score.value for score in one.outcome.scores}


def test_a_backbone_as_a_whole_stands_at_its_best_batch() -> None:
    found = found_of(costs())
    assert values(found, WHOLE_BACKBONE) == pytest.approx(
        {
            "images-per-second": 400,
            "best-batch": 2,
            "largest-batch": 64,
            "latency": 4,
            "spread": 10,
            "peak-memory": 5000,
            "parameters": 30,
            "gflops": 0.003,
        }
    )
    assert found.arrays == {}


def test_a_layer_has_what_a_backbone_costs_that_ends_there() -> None:
    found = found_of(costs())
    assert values(found, FIRST) == pytest.approx(
        {"ms": 2, "ms-batch": 1.5, "parameters": 10, "gflops": 0.001, "dim": 8, "bytes": 32, "tokens": 64}
    )
    assert values(found, LAST)["ms"] == values(found, WHOLE_BACKBONE)["latency"]
    assert {score.n for one in found.outcomes for score in one.outcome.scores} == {1, 3, 5, 10}


def test_other_work_that_disturbs_each_pass_somewhere_hides_no_time() -> None:
    """Each pass is disturbed in another layer: the shortest pass takes 7, the parts alone take 1 and 2."""
    one = Timed(1, {FIRST: [5, 1, 6], LAST: [7, 9, 8]})
    assert one.shortest == {FIRST: 1, LAST: 3}
    assert (one.whole, one.passes) == (3, 3)
    assert one.spread == pytest.approx(7.5 / 3 - 1)


def test_each_size_of_an_image_has_times_and_operations_of_its_own() -> None:
    larger = view(
        timed=timed(1, 0.008, 0.02),
        operations={FIRST: 6_000_000, LAST: 9_000_000},
        tokens={FIRST: 391, LAST: 98},
    )
    found = found_of(costs(views={OWN: view(), LARGER: larger}))
    assert values(found, FIRST)["ms"] == 2
    assert values(found, LAST, LARGER) == pytest.approx({"ms": 20, "gflops": 0.009, "tokens": 98})
    assert set(values(found, WHOLE_BACKBONE, LARGER)) == {"spread"}
    assert values(found, WHOLE_BACKBONE)["latency"] == 4


def test_what_was_not_measured_has_a_reason_and_no_number() -> None:
    none = dict.fromkeys((FIRST, LAST), 0)
    found = found_of(
        costs(
            views={OWN: view(operations=none)},
            weights=none,
            peak=None,
            largest=None,
            reasons={"largest-batch": "no memory"},
        )
    )
    whole = found.outcomes[0].outcome
    assert set(values(found, WHOLE_BACKBONE)) == {"images-per-second", "best-batch", "latency", "spread"}
    assert whole.missing == {"largest-batch": "no memory"}
    assert set(values(found, FIRST)) == {"ms", "ms-batch", "dim", "bytes", "tokens"}


def test_of_equal_rates_the_smaller_batch_is_the_best() -> None:
    assert costs(batches=(timed(1, 0.001, 0.002), timed(2, 0.002, 0.004))).best.batch == 1

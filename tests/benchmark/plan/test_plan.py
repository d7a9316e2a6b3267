"""The plan shows each source once to each backbone; limits and records are what they say."""

from pathlib import Path

import numpy as np
import pytest

from benchmark.plan.datasets import Binder, DataLocation
from benchmark.plan.plan import Plan, make_plan
from benchmark.plan.suites import STANDARD
from benchmark.scores.assess import assess_outcomes, measured
from benchmark.scores.layers import LayerOutcome
from benchmark.scores.records import Context, Scored, is_current, to_records
from leaderboards.records.files import safe_name
from tasks.base import Items, Outcome, Score, Statistic
from tasks.registry import find_tasks
from zoo.registry import find
from zoo.spec import Layer


def plan(
    data: Path, *tasks: str, backbones: tuple[str, ...] = ("mini-fs",), limit: int | None = None
) -> Plan:
    location = DataLocation(STANDARD.catalogue, data, None, limit)
    return make_plan(find(backbones), Binder(location).bind(find_tasks(tasks), named=bool(tasks)).tasks)


@pytest.mark.parametrize(
    ("tasks", "passes", "images"),
    [
        (("knn",), 2, 18),
        (("cluster-image",), 1, 12),
        (("knn", "cluster-image", "cka"), 2, 18),
        (("retrieval",), 4, 20),
        (("davis", "spair"), 2, 14),
        ((), 10, 67),
    ],
)
def test_tasks_share_the_passes_of_their_sources(
    data: Path, tasks: tuple[str, ...], passes: int, images: int
) -> None:
    found = plan(data, *tasks, backbones=("mini-fs", "mini-dino"))
    assert [(len(one.passes), one.images) for one in found.backbones] == [(passes, images)] * 2


def test_a_pass_knows_what_it_serves_and_scales_its_view(data: Path) -> None:
    found = plan(data, "knn", "cka", "davis", backbones=("mini-fs", "dino-b16"))
    by_name = {each.spec.name: {one.source.name: one for one in each.passes} for each in found.backbones}
    small, large = by_name["mini-fs"], by_name["dino-b16"]
    probe = small["imagenet/train-probe"]
    assert [task.task.name for task in probe.dense] == ["cka"]
    assert probe.view != large["imagenet/train-probe"].view
    assert [task.task.name for task in found.comparisons] == ["cka"]
    assert [task.task.name for task in found.backbones[0].tasks] == ["knn", "davis"]


def test_limits_make_everything_smaller_and_partial(data: Path) -> None:
    whole, limited = plan(data), plan(data, limit=1)
    assert limited.backbones[0].images < whole.backbones[0].images
    for task in (*limited.backbones[0].tasks, *limited.comparisons):
        assert task.coverage.partial
        assert "limited to 1" in str(task.coverage)
    counts = {one.source.name: len(one.source.samples) for one in limited.backbones[0].passes}
    assert counts == {
        "imagenet/train-probe": 3,
        "imagenet/val": 3,
        "roxford5k/database": 8,
        "roxford5k/queries": 1,
        "rparis6k/database": 8,
        "rparis6k/queries": 1,
        "davis-2017-val": 4,
        "spair-71k-test": counts["spair-71k-test"],
        "coco-val2017": 1,
        "partimagenet": 1,
    }


def test_a_layer_without_a_score_has_an_empty_record_with_its_reason(data: Path) -> None:
    found = plan(data, "knn").backbones[0]
    scored = Scored(found.tasks[0], "print", 2, 1.5)
    context = Context("standard", found.spec, "seed-0", "float32", "cpu")
    values, statistics = {"top-1": np.array([100.0, 0.0])}, {"top-1": Statistic("top-1")}
    items = Items("images", ("a", "b"), ("a", "b"), ("", ""), values, statistics)
    outcomes = [
        LayerOutcome(Layer(1), "cls", Outcome((Score("top-1", 50.0, 2, "images"),), items)),
        LayerOutcome(Layer(1), "mean", Outcome((), empty="features are not finite")),
    ]
    first, second = to_records(context, scored, outcomes, assess_outcomes(outcomes, "top-1"))
    assert (first.value, first.primary, first.reason, first.n) == (50.0, True, "", 2)
    assert np.isnan(second.value)
    assert (second.primary, second.reason) == (False, "features are not finite")
    assert first.partial
    assert first.coverage.endswith("2 unreadable images left out")
    assert first.ci_low < 50 < first.ci_high
    assert first.chosen == 1
    assert not first.tied
    assert np.isnan([second.ci_low, second.chosen, second.held_out]).all()
    assert measured(outcomes) == {(1, "block", "cls"): items}


def test_names_of_files_and_damaged_ones(tmp_path: Path) -> None:
    assert safe_name("facebook/dinov2-base@main") == "facebook__dinov2-base@main"
    assert safe_name("/abs/path/") == "abs__path"
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1")
    assert not is_current(tmp_path / "damaged.parquet", "print")
    assert not is_current(tmp_path / "absent.parquet", "print")

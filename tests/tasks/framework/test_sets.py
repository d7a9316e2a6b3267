"""Sets of layers by name, and the measurers of grids that take layers together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from layerboard.benchmark.passes.collectors import Gathered
from layerboard.tasks.classification.knn import KnnTask
from layerboard.tasks.datasets.davis import DavisEntry, Videos
from layerboard.tasks.framework.checks import NOT_FINITE
from layerboard.tasks.framework.feeds import LASTING_GRIDS
from layerboard.tasks.framework.protocols import STANDARD, find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.framework.sets import (
    GIVEN_METRIC,
    GREEDY,
    GREEDY_METRIC,
    forward_selection,
    is_possible,
    marks_of,
    members_of,
    names_of,
    parse_sets,
    sets_of,
)
from layerboard.tasks.keypoints.task import KeypointTask
from layerboard.tasks.propagation.task import PropagationTask
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Layer
from tests.benchmark.doubles import SPEC
from tests.fakes import write_fake_davis
from tests.tasks import passes
from tests.tasks.framework.test_sources import classification, probed, sources
from tests.tasks.keypoints.test_problem import VIEW_64, random_grids, random_problem

BLOCKS = tuple(Layer(index) for index in range(1, 13))


def texts(sets: Sequence[Layer]) -> list[str]:
    return [str(one) for one in sets]


def test_a_set_is_called_by_its_blocks() -> None:
    four = Layer(12, fused=(9, 10, 11))
    assert (str(four), four.index) == ("9+10+11+12", 12)
    assert four.members == tuple(Layer(index) for index in (9, 10, 11, 12))
    assert Layer.of_record(12, "9+10+11+12") == four
    assert Layer.of_record(3, "block").members == (Layer(3),)
    assert Layer(12).place < four.place < Layer(13).place
    with pytest.raises(ValueError, match="there is no tap 'nowhere'"):
        Layer.of_record(3, "nowhere")


@pytest.mark.parametrize(
    ("name", "depth", "expected"),
    [
        ("last4", 12, ["9+10+11+12"]),
        ("last4", 3, ["1+2+3"]),
        ("quarters", 12, ["3+6+9+12"]),
        ("quarters", 10, ["3+5+8+10"]),
        ("quarters", 2, ["1+2"]),
        ("all", 3, ["1+2+3"]),
        ("pairs", 3, ["1+2", "1+3", "2+3"]),
        ("all", 1, []),
        ("pairs", 1, []),
        ("5+8+12", 12, ["5+8+12"]),
        ("5+8+12", 11, []),
        ("greedy:3", 4, ["1+2", "1+3", "2+3", "1+2+3", "1+4", "2+4", "3+4", "1+2+4", "1+3+4", "2+3+4"]),
    ],
)
def test_names(name: str, depth: int, expected: list[str]) -> None:
    assert texts(sets_of([name], depth, BLOCKS[:depth])) == expected


def test_a_set_is_there_where_all_of_it_is_scored_and_once() -> None:
    some = (Layer(0), Layer(3), Layer(6), Layer(9), Layer(12), Layer(12, "final"))
    assert texts(sets_of(["last4", "quarters", "all"], 12, some)) == ["3+6+9+12"]
    assert len(sets_of(["pairs"], 12, some)) == 6
    assert texts(sets_of(["last4", "quarters", "all"], 4, BLOCKS[:4])) == ["1+2+3+4"]
    assert names_of((1, 2, 3, 4), 4) == ("last4", "quarters", "all")
    assert names_of((2, 7), 12) == ("pairs",)


def test_names_are_checked() -> None:
    assert parse_sets(["pairs", "last4", "pairs"]) == ("last4", "pairs")
    with pytest.raises(InputError, match=r"--fuse takes last4, quarters, all, pairs, .* found 'last5'"):
        parse_sets(["last5"])
    assert parse_sets(["24+5+12", "greedy:3", "all", "5+12+24"]) == ("all", "5+12+24", "greedy:3")
    for wrong in ("5+5", "0+12"):
        with pytest.raises(InputError, match=r"blocks are numbers from 1 on, each once"):
            parse_sets([wrong])
    for wrong in ("loes:2", "greedy", "5+", "+5", "5+final"):
        with pytest.raises(InputError, match="--fuse takes"):
            parse_sets([wrong])


def test_a_greedy_choice_is_among_at_most_twelve_blocks_up_to_the_last() -> None:
    deep = [Layer(index) for index in range(1, 25)]
    sets = sets_of([GREEDY], 24, deep)
    assert len(sets) == 66 + 220
    assert [layer.index for layer in members_of(sets)] == [*range(2, 25, 2)]
    marks = marks_of([GREEDY, "2+4", "1+2", "pairs"], 24, deep)
    assert len(marks) == len(sets) + 1
    assert marks[Layer(4, fused=(2,))] == (GREEDY_METRIC, GIVEN_METRIC)
    assert marks[Layer(2, fused=(1,))] == (GIVEN_METRIC,)
    assert (is_possible("1+3", 12, BLOCKS[:3]), is_possible("1+3", 12, BLOCKS[:2])) == (True, False)


def test_forward_selection_adds_what_helps_most_to_what_is_best() -> None:
    members = [frozenset(blocks) for blocks in ((1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3))]

    def reached(*scores: float) -> set[int]:
        return set(members[forward_selection(members, scores)])

    assert reached(5, 6, 6, 7, 9, 8, 8.5) == {2, 3, 1}  # not the best pair, which lacks the best block
    assert reached(5, 6, 6, 7, 9, 8, 8) == {2, 3}
    assert reached(5, 9, 6, 9, 9, 9, 10) == {2}  # nothing helps at once


def test_a_task_scores_sets_of_which_all_layers_are_there(davis: Videos) -> None:
    taken, reason = PropagationTask(davis, config_of(STANDARD, "davis")).with_sets(("1+2",))
    assert (taken.sets, reason) == (("1+2",), "")
    assert taken.has_any(BLOCKS, SPEC)
    assert not taken.has_any(BLOCKS[:1], SPEC)


def test_images_wait_until_all_layers_have_shown_them() -> None:
    gathered, shown = Gathered([Layer(2, fused=(1,))]), torch.arange(6.0).view(3, 1, 1, 2)
    assert gathered.add(BLOCKS[0], [0, 1], shown[:2]) == ([], {})
    assert gathered.add(BLOCKS[0], [2], shown[2:]) == ([], {})
    kept = shown.clone()
    shown.zero_()  # what a layer shows may be overwritten after the call
    done, grids = gathered.add(BLOCKS[1], [0, 1, 2], kept)
    assert done == [0, 1, 2]
    assert torch.equal(grids[BLOCKS[0]], kept)


def test_layers_are_taken_together_if_their_members_have_equal_grids() -> None:
    grids = {Layer(index): torch.zeros(2, 4 // index, 4, 8) for index in (1, 2)} | {
        Layer(3): torch.zeros(2, 2, 4, 16)
    }
    found = Gathered(SETS).of_one_grid(grids)
    assert {size: texts(layers) for size, layers in found.items()} == {(): ["1+2", "1+2+3"], (2, 4): ["2+3"]}


def side_by_side(grids: Sequence[Tensor]) -> Tensor:
    return torch.cat([normalize(one, dim=-1) for one in grids], dim=-1) / len(grids) ** 0.5


LAYERS = {Layer(index): 10.0**index * random_grids(index, width=5 + index) for index in (1, 2, 3)}
SETS = (Layer(2, fused=(1,)), Layer(3, fused=(2,)), Layer(3, fused=(1, 2)))


@pytest.mark.parametrize("protocol", ["standard", "probe3d", "geoaware", "insid3", "dift"])
def test_keypoints_are_matched_as_by_tokens_side_by_side(protocol: str) -> None:
    rule = config_of(find_protocol(protocol), "spair")
    task = replace(random_problem(3), config=replace(rule, draw=None))
    together = replace(task, sets=("pairs",))
    group = task.source.groups[0]
    keys = [sample.key for sample in group.samples]
    rows = [task.data.samples.index(sample) for sample in group.samples]

    def measured(of: KeypointTask, layers: dict[Layer, Tensor], sets: Sequence[Layer] = ()) -> Any:
        named = {layer: dict(zip(keys, grids, strict=True)) for layer, grids in layers.items()}
        return passes.measured_group(of, group, named, 2, VIEW_64, sets)[0]

    layers = {layer: grids[rows] for layer, grids in LAYERS.items()}
    assert task.feed == LASTING_GRIDS  # its grids may be kept
    found = measured(together, layers, SETS)
    for one in SETS:
        tokens = side_by_side([layers[each] for each in one.members])
        (expected,) = measured(task, {Layer(1): tokens}).values()
        for name in set(expected) - {"point"}:
            np.testing.assert_allclose(found[one][name], expected[name], atol=1e-4, rtol=0)
    assert "point" not in found[SETS[0]]


@pytest.fixture
def davis(tmp_path: Path) -> Videos:
    write_fake_davis(tmp_path, sequences=2, frames=5)
    return DavisEntry(sequences=2, frames=10, objects=4).read(tmp_path)


def test_no_set_of_finite_layers_asks_nothing_of_a_task() -> None:
    """Of a backbone whose every layer is NaN, neither a layer nor a set is left."""
    images = classification(np.arange(4), np.arange(4))
    task = KnnTask(probed(images, sources(images, np.arange(4))), config_of(STANDARD, "knn"), sets=("pairs",))
    broken = {s.key: np.full(3, np.inf) for source in task.vector_sources for s in source.samples}
    (found,) = passes.outcomes(task, dict.fromkeys(BLOCKS[:2], broken)).items()
    assert (str(found[0]), found[1].empty) == ("1+2", NOT_FINITE)

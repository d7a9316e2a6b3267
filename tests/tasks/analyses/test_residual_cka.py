"""CKA of planted skips and branches, from what a pass shows to records and arrays."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.tasks.analyses.residual_cka import ResidualCka
from layerboard.tasks.framework.base import Findings
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.similarity.cka import UNDEFINED, CkaConfig
from layerboard.zoo.spec import Layer, Tap
from tests.benchmark.doubles import SPEC
from tests.tasks.agreement.similarity import batched
from tests.tasks.analyses.planted import convnet, left_behind, noise, sources, transformer

RESIDUAL_CKA = config_of(STANDARD, "residual-cka")

TOKENS = replace(SPEC, heads=2)
IMAGES, CELLS, DIM = 20, 4, 6
GROUPS = (12, 8)
POOLINGS = ("cls", "patch", "all")
TERMS: tuple[Tap, ...] = ("input", "attention", "mlp")


def find(place: Path, shown, *, batch=4, groups=GROUPS, rule=RESIDUAL_CKA, **options) -> Findings:  # type: ignore[no-untyped-def]
    problem = ResidualCka(sources(groups, batch), rule)
    return problem.findings(left_behind(problem, place, shown, **({"spec": TOKENS} | options)))


def scores(found: Findings, layer: Layer, pooling: str, other: Layer | None = None) -> dict[str, float]:
    (one,) = (
        each for each in found.outcomes if (each.layer, each.pooling, each.other) == (layer, pooling, other)
    )
    return {score.metric: score.value for score in one.outcome.scores}


def drawn(seed: int, images: int = IMAGES) -> dict[Tap, Tensor]:
    return {tap: noise(images, 1 + CELLS, DIM, seed=10 * seed + place) for place, tap in enumerate(TERMS)}


@pytest.mark.parametrize("min_max", [False, True])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_equals_cka_of_the_features_themselves(tmp_path: Path, pooling: str, min_max: bool) -> None:
    blocks = {1: drawn(1), 2: drawn(2)}
    rule = CkaConfig(POOLINGS, min_max)
    found = find(tmp_path, {i: transformer(i, terms) for i, terms in blocks.items()}, rule=rule)
    pooled = {"cls": slice(0, 1), "patch": slice(1, None), "all": slice(None)}[pooling]
    taps: dict[tuple[int, str], Tensor] = {}
    for index, terms in blocks.items():
        mid = terms["input"] + terms["attention"]
        every = terms | {"mid": mid, "block": mid + terms["mlp"]}
        taps |= {(index, tap): one[:, pooled] for tap, one in every.items()}
    whole = batched([one.flatten(1) for one in taps.values()], 4, min_max=min_max).numpy()
    places = list(taps)
    for a, b in (("input", "attention"), ("attention", "mid"), ("mid", "mlp"), ("mid", "block")):
        for one in blocks:
            for other in blocks:
                value = scores(found, Layer(one, a), pooling, Layer(other, b))["CKA"]  # type: ignore[arg-type]
                reference = whole[places.index((one, a)), places.index((other, b))]
                assert value == pytest.approx(reference, abs=2e-5)
    within = scores(found, Layer(2, "mlp"), pooling)
    assert within == {
        f"cka-{name}": pytest.approx(whole[places.index((2, a)), places.index((2, b))], abs=2e-5)
        for name, a, b in (
            ("skip-branch", "mid", "mlp"),
            ("skip-output", "mid", "block"),
            ("branch-output", "mlp", "block"),
        )
    }


def test_every_pair_of_blocks_is_there_with_its_error_and_in_the_arrays(tmp_path: Path) -> None:
    found = find(tmp_path, {i: transformer(i, drawn(i)) for i in (1, 2, 3)})
    across = [one for one in found.outcomes if one.other is not None]
    assert len(across) == 3 * 6 * 9  # poolings, pairs of taps, pairs of blocks
    assert len({(one.layer, one.other, one.pooling) for one in across}) == len(across)
    assert all(score.n == IMAGES and score.error > 0 for one in across for score in one.outcome.scores)
    arrays = found.arrays
    assert arrays["cka"].shape == (3, 2, 3, 3, 3)
    assert arrays["pooling"].tolist() == list(POOLINGS)
    assert arrays["half"].tolist() == ["attention", "mlp"]
    assert arrays["pair"].tolist() == ["skip-branch", "skip-output", "branch-output"]
    assert arrays["block"].tolist() == [1, 2, 3]
    value = scores(found, Layer(3, "mid"), "all", Layer(1, "mlp"))["CKA"]
    assert arrays["cka"][2, 1, 0, 2, 0] == pytest.approx(value)


def test_images_that_cannot_be_read_leave_their_batch(tmp_path: Path) -> None:
    shown = {1: transformer(1, drawn(1))}
    some = find(tmp_path / "some", shown, batch=6, seen=[range(12), [0, 1, 2, 6, 7]])
    first = {1: transformer(1, drawn(1))}
    whole = find(tmp_path / "first", first, batch=6, seen=[range(12), []])
    layer = Layer(1, "mlp")
    assert scores(some, layer, "all") == pytest.approx(scores(whole, layer, "all"))
    none = find(tmp_path / "none", shown, seen=[[0, 1], [4]])
    assert {one.outcome.empty for one in none.outcomes} == {"no batch has four images that can be read"}


def test_a_block_that_is_no_sum_or_not_finite_empties_its_own_entries(tmp_path: Path) -> None:
    wrong = transformer(1, drawn(1) | {"mid": drawn(1)["attention"]})
    broken = drawn(2)
    broken["mlp"][5, 3, 1] = float("nan")
    found = find(tmp_path, {1: wrong, 2: transformer(2, broken), 3: transformer(3, drawn(3))})
    reasons = {one.layer.index: one.outcome.empty for one in found.outcomes if one.other is None}
    assert reasons[1].startswith("its output is not the sum")
    assert reasons[2] == "features are not finite"
    assert not reasons[3]
    known = ~np.isnan(found.arrays["cka"])
    assert known[..., 2, 2].all()
    assert known.sum() == known[..., 2, 2].size
    empty = [one for one in found.outcomes if one.other is not None and not one.outcome.scores]
    assert len(empty) == 3 * 6 * 8
    assert {metric for one in empty for metric in one.outcome.missing} == {"CKA"}


def test_a_branch_that_does_not_vary_has_no_cka(tmp_path: Path) -> None:
    still = drawn(1) | {"attention": torch.ones(IMAGES, 1 + CELLS, DIM)}
    found = find(tmp_path, {1: transformer(1, still)})
    (one,) = (
        each
        for each in found.outcomes
        if each.layer == Layer(1, "attention") and each.pooling == "cls" and each.other is None
    )
    assert one.outcome.empty == UNDEFINED
    assert [score.metric for score in one.outcome.scores] == ["cka-skip-output"]


def test_without_a_class_token_there_are_patches_only(tmp_path: Path) -> None:
    terms = {tap: one[:, 1:] for tap, one in drawn(1).items()}
    found = find(tmp_path, {1: transformer(1, terms, cls=False)})
    assert {one.pooling for one in found.outcomes} == {"patch"}


def test_a_convnet_compares_skip_branch_and_what_it_rectifies(tmp_path: Path) -> None:
    large, small = noise(IMAGES, 16, DIM), noise(IMAGES, 4, DIM, seed=1)
    shown = {1: convnet(1, large, large / 2), 2: convnet(2, small, noise(IMAGES, 4, DIM, seed=2))}
    found = find(tmp_path, shown, spec=replace(SPEC, prefix_tokens=0, has_cls=False))
    assert scores(found, Layer(1, "branch"), "patch")["cka-skip-branch"] == pytest.approx(1, abs=1e-5)
    assert found.arrays["cka"].shape == (1, 1, 3, 2, 2)
    across = scores(found, Layer(2, "skip"), "patch", Layer(1, "branch"))["CKA"]
    assert found.arrays["cka"][0, 0, 0, 1, 0] == pytest.approx(across)

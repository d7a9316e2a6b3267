"""Residual sums with planted ratios, from what a pass shows to scores, items and arrays."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.tasks.analyses.residuals import Residuals, frobenius_ratio, norm_ratio, token_cosines
from layerboard.tasks.framework.base import Findings, Outcome
from layerboard.zoo.spec import Layer, Tap
from tests.benchmark.doubles import SPEC
from tests.tasks.analyses.planted import convnet, left_behind, noise, sources, transformer
from tests.tasks.passes import by_metric

TOKENS = replace(SPEC, heads=2)
IMAGES, CELLS, DIM = 7, 4, 6


def find(place: Path, shown, *, groups=(4, 3), spec=TOKENS, **options) -> Findings:  # type: ignore[no-untyped-def]
    problem = Residuals(sources(groups))
    return problem.findings(left_behind(problem, place, shown, spec=spec, **options))


def outcome(found: Findings, layer: Layer, pooling: str) -> Outcome:
    (one,) = (each for each in found.outcomes if (each.layer, each.pooling) == (layer, pooling))
    return one.outcome


def at_right_angles(ratio: float, cells: int = CELLS) -> dict[Tap, Tensor]:
    """A stream and two branches, each token at a right angle to what it is added to, with that ratio."""
    stream = torch.zeros(IMAGES, 1 + cells, DIM)
    stream[..., 0] = ratio
    attention, mlp = torch.zeros_like(stream), torch.zeros_like(stream)
    attention[..., 1] = 1
    mlp[..., 2] = math.sqrt(ratio**2 + 1) / ratio
    return {"input": stream, "attention": attention, "mlp": mlp}


def test_a_branch_of_a_quarter_gives_four(tmp_path: Path) -> None:
    stream = noise(IMAGES, 1 + CELLS, DIM)
    terms: dict[Tap, Tensor] = {"input": stream, "attention": stream / 4, "mlp": stream}
    found = find(tmp_path, {1: transformer(1, terms)})
    for pooling in ("cls", "patch", "all"):
        attention = by_metric(outcome(found, Layer(1, "attention"), pooling))
        assert attention["norm-ratio"] == pytest.approx(4, rel=1e-6)
        assert attention["cosine-skip-output"] == pytest.approx(1, abs=1e-6)
        assert attention["zero-branches"] == 0
        mlp = by_metric(outcome(found, Layer(1, "mlp"), pooling))
        assert mlp["norm-ratio"] == pytest.approx(1.25, rel=1e-6)  # its skip is 5/4 of the stream
    assert by_metric(outcome(found, Layer(1, "attention"), "patch"))["norm-ratio-frobenius"] == pytest.approx(
        4
    )
    assert "norm-ratio-frobenius" not in by_metric(outcome(found, Layer(1, "attention"), "cls"))


def test_means_of_ratios_over_tokens_and_frobenius_norms(tmp_path: Path) -> None:
    stream, attention = (torch.zeros(IMAGES, 1 + CELLS, DIM) for _ in range(2))
    stream[..., 0], attention[..., 1] = torch.tensor([5.0, 1, 3, 1, 3]), 1
    terms: dict[Tap, Tensor] = {"input": stream, "attention": attention, "mlp": attention}
    found = find(tmp_path, {1: transformer(1, terms)})
    patch = by_metric(outcome(found, Layer(1, "attention"), "patch"))
    assert patch["norm-ratio"] == pytest.approx(2)
    assert patch["norm-ratio-frobenius"] == pytest.approx(math.sqrt(5))
    assert by_metric(outcome(found, Layer(1, "attention"), "cls"))["norm-ratio"] == pytest.approx(5)
    assert by_metric(outcome(found, Layer(1, "attention"), "all"))["norm-ratio"] == pytest.approx(13 / 5)
    np.testing.assert_allclose(found.arrays["ratio"][0, 0], [5, 1, 3, 1, 3])
    assert found.arrays["ratio"].shape == (1, 2, 1 + CELLS)
    assert found.arrays["block"].tolist() == [1]
    assert found.arrays["half"].tolist() == ["attention", "mlp"]


def test_batches_and_images_that_cannot_be_read_change_nothing_else(tmp_path: Path) -> None:
    terms: dict[Tap, Tensor] = {
        tap: noise(IMAGES, 1 + CELLS, DIM, seed=seed)
        for seed, tap in enumerate(("input", "attention", "mlp"))  # type: ignore[misc]
    }
    shown = {1: transformer(1, terms)}
    whole, parts = (find(tmp_path / str(pieces), shown, pieces=pieces) for pieces in (1, 2))
    layer = Layer(1, "mlp")
    assert by_metric(outcome(whole, layer, "all")) == pytest.approx(by_metric(outcome(parts, layer, "all")))
    np.testing.assert_allclose(whole.arrays["ratio"], parts.arrays["ratio"], rtol=1e-6)
    seen = find(tmp_path / "seen", shown, seen=[[0, 2, 3], []])
    items = outcome(seen, layer, "all").items
    assert items is not None
    assert items.keys == ("0-0", "0-2", "0-3")
    every = outcome(whole, layer, "all").items
    assert every is not None
    for name, column in items.values.items():
        np.testing.assert_allclose(column, every.values[name][[0, 2, 3]], rtol=1e-6)
        assert by_metric(outcome(seen, layer, "all"))[name] == pytest.approx(column.mean())


def test_tokens_whose_branch_is_zero_are_left_out_and_counted(tmp_path: Path) -> None:
    terms = at_right_angles(2)
    terms["attention"][:, 1] = 0  # the first patch of every image
    terms["attention"][0, 1:] = 0  # all patches of the first
    found = find(tmp_path, {1: transformer(1, terms)})
    patch = outcome(found, Layer(1, "attention"), "patch")
    assert by_metric(patch)["norm-ratio"] == pytest.approx(2)
    assert by_metric(patch)["zero-branches"] == IMAGES + CELLS - 1
    numbers = {score.metric: score.n for score in patch.scores}
    assert numbers["norm-ratio"] == numbers["norm-ratio-frobenius"] == IMAGES - 1
    assert numbers["cosine-skip-output"] == IMAGES  # an output that is its skip has the cosine 1 with it
    assert numbers["zero-branches"] == IMAGES * CELLS
    assert np.isnan(found.arrays["ratio"][0, 0, 1])


def test_a_block_whose_branches_are_all_zero_has_no_ratio(tmp_path: Path) -> None:
    terms = at_right_angles(2)
    terms["attention"] = torch.zeros_like(terms["attention"])
    found = find(tmp_path, {1: transformer(1, terms)})
    one = outcome(found, Layer(1, "attention"), "patch")
    assert one.empty == "every branch is zero"
    assert by_metric(one) == {"cosine-skip-output": pytest.approx(1), "zero-branches": IMAGES * CELLS}
    assert not outcome(found, Layer(1, "mlp"), "patch").empty


def test_an_output_that_is_no_sum_has_no_values(tmp_path: Path) -> None:
    terms = at_right_angles(2)
    without_skip = terms | {"mid": terms["attention"]}
    found = find(tmp_path, {1: transformer(1, without_skip), 2: transformer(2, terms)})
    for tap in ("attention", "mlp"):
        one = outcome(found, Layer(1, tap), "cls")  # type: ignore[arg-type]
        assert one.empty.startswith("its output is not the sum of what skips and what is added: entries of")
        assert not one.scores
    assert np.isnan(found.arrays["ratio"][0]).all()
    assert by_metric(outcome(found, Layer(2, "mlp"), "cls"))["norm-ratio"] == pytest.approx(2)
    almost = terms | {"mid": terms["input"] + terms["attention"] + 1e-4}
    assert not outcome(find(tmp_path / "a", {1: transformer(1, almost)}), Layer(1, "mlp"), "cls").empty


def test_a_sum_in_low_precision_is_one(tmp_path: Path) -> None:
    terms: dict[Tap, Tensor] = {
        tap: noise(IMAGES, 1 + CELLS, DIM, seed=seed).half()
        for seed, tap in enumerate(("input", "attention", "mlp"))  # type: ignore[misc]
    }
    assert not outcome(find(tmp_path, {1: transformer(1, terms)}), Layer(1, "mlp"), "all").empty


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_features_that_are_not_finite_empty_their_block(tmp_path: Path, value: float) -> None:
    terms = at_right_angles(2)
    broken = {tap: one.clone() for tap, one in terms.items()}
    broken["mlp"][3, 2, 1] = value
    found = find(tmp_path, {1: transformer(1, broken), 2: transformer(2, terms)})
    assert outcome(found, Layer(1, "mlp"), "patch").empty == "features are not finite"
    assert not outcome(found, Layer(2, "mlp"), "patch").empty


def test_the_block_where_the_class_token_stops_skipping(tmp_path: Path) -> None:
    def block(index: int, cls: float) -> list:  # type: ignore[type-arg]
        terms = at_right_angles(2)
        terms["input"][:, 0, 0] = cls
        return transformer(index, terms)

    found = find(tmp_path, {1: block(1, 9), 2: block(2, 3), 3: block(3, 1), 4: block(4, 4)})
    one = next(each for each in found.outcomes if each.layer == Layer(-1, "attention"))
    assert by_metric(one.outcome) == {"phase-transition": 3}
    never = find(tmp_path / "never", {1: block(1, 9)})
    one = next(each for each in never.outcomes if each.layer == Layer(-1, "attention"))
    reason = "in no block is the ratio of the patches above the class token's"
    assert one.outcome.missing == {"phase-transition": reason}


def test_without_a_class_token_there_are_patches_only(tmp_path: Path) -> None:
    terms = {tap: one[:, 1:] for tap, one in at_right_angles(2).items()}
    found = find(tmp_path, {1: transformer(1, terms, cls=False)})
    assert {one.pooling for one in found.outcomes} == {"patch"}
    assert by_metric(outcome(found, Layer(1, "attention"), "patch"))["norm-ratio"] == pytest.approx(2)
    lacking = outcome(found, Layer(-1, "mlp"), "patch").missing
    assert lacking == {"phase-transition": "there is no class token"}


def test_a_convnet_has_one_half_and_grids_that_shrink(tmp_path: Path) -> None:
    large, small = noise(IMAGES, 16, DIM), noise(IMAGES, 4, 2 * DIM)
    shown = {1: convnet(1, large, large / 2), 2: convnet(2, small, -small / 8)}
    found = find(tmp_path, shown, spec=replace(SPEC, prefix_tokens=0, has_cls=False))
    first = by_metric(outcome(found, Layer(1, "branch"), "patch"))
    second = by_metric(outcome(found, Layer(2, "branch"), "patch"))
    assert first["norm-ratio"] == pytest.approx(2, rel=1e-6)
    assert second["norm-ratio"] == pytest.approx(8, rel=1e-6)
    assert second["cosine-branch-output"] == pytest.approx(-1, abs=1e-6)
    assert found.arrays["ratio"].shape == (2, 1, 16)
    assert np.isfinite(found.arrays["ratio"]).sum(axis=-1).tolist() == [[16], [4]]
    assert found.arrays["half"].tolist() == ["branch"]


def with_angle(ratio: float, angle: float) -> tuple[torch.Tensor, torch.Tensor]:
    """One token whose skip is so many times as long as its branch, with that cosine between them."""
    skip = torch.tensor([[ratio, 0.0]])
    return skip, torch.tensor([[angle, math.sqrt(1 - angle**2)]])


def test_ratios_do_not_see_rotations_and_common_scales() -> None:
    skip, branch = noise(4, 6, 8), noise(4, 6, 8, seed=1)
    rotation = torch.linalg.qr(noise(8, 8, seed=2)).Q
    turned = norm_ratio(3 * skip @ rotation, 3 * branch @ rotation)
    torch.testing.assert_close(turned, norm_ratio(skip, branch), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("angle", [-0.9, 0.0, 0.3, 1.0])
def test_cosines_follow_from_ratio_and_angle(ratio: float, angle: float) -> None:
    skip, branch = with_angle(ratio, angle)
    length = math.sqrt(ratio**2 + 2 * ratio * angle + 1)
    assert token_cosines(skip, branch).item() == pytest.approx(angle, abs=1e-6)
    assert token_cosines(skip, skip + branch).item() == pytest.approx((ratio + angle) / length, abs=1e-6)
    assert token_cosines(branch, skip + branch).item() == pytest.approx(
        (ratio * angle + 1) / length, abs=1e-6
    )


def test_nothing_to_divide_by_is_nan_in_its_own_token_only() -> None:
    skip, branch = noise(2, 3, 4), noise(2, 3, 4, seed=1)
    branch[0, 1] = 0
    assert norm_ratio(skip, branch).isnan().tolist() == [[False, True, False], [False] * 3]
    assert token_cosines(skip, branch).isnan().tolist() == [[False, True, False], [False] * 3]
    assert not frobenius_ratio(skip, branch).isnan().any()
    assert frobenius_ratio(skip, torch.zeros_like(skip)).isnan().all()


def test_low_precision_is_measured_in_float32() -> None:
    skip = torch.full((1, 1, 600), 200.0, dtype=torch.float16)  # its square overflows
    assert norm_ratio(skip, skip / 2).item() == pytest.approx(2, abs=1e-3)

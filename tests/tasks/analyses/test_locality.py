"""Planted heads against the blocks of a ConvNet, from what passes show to pairs."""

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.benchmark.passes.shards import MeasuredLayers
from layerboard.tasks.analyses.locality import Locality, subsets_of, windows
from layerboard.tasks.framework.base import PairFindings
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.similarity.metric import gather, gram_matrix, u_centred
from layerboard.zoo.features import AttentionMaps, LayerFeatures, Shown
from layerboard.zoo.spec import WHOLE_BACKBONE, BackboneSpec, Layer, Stage
from tests.benchmark.doubles import SPEC
from tests.tasks.agreement.similarity import cka
from tests.tasks.analyses.planted import SIZE, features, left_behind, noise, sources

IMAGES, CELLS, WIDTH = 64, 4, 3
CONVNET = replace(SPEC, name="convnet", prefix_tokens=0, has_cls=False)  # has three blocks
HEADS = Layer(1, "heads")


def transformer(heads: int) -> BackboneSpec:
    return replace(SPEC, name="transformer", heads=heads)


@dataclass
class Backbone:
    """What is stored of a backbone, in memory."""

    spec: BackboneSpec
    found: MeasuredLayers
    refusal: str = ""
    layers: tuple[Layer, ...] = (Layer(1),)
    device = None

    @property
    def of_source(self) -> Any:
        return SimpleNamespace(shown=np.ones(IMAGES, bool))

    def left_behind(self, group: int):  # type: ignore[no-untyped-def]
        return {layer: self.found[layer][group] for layer in self.found}


def maps(shares: list[float]) -> AttentionMaps:
    """Heads that look at their own cell but for that share, which goes to a cell at the distance 1."""
    neighbour = torch.eye(CELLS)[[1, 0, 3, 2]]
    inside = torch.stack([(1 - share) * torch.eye(CELLS) + share * neighbour for share in shares])
    whole = torch.zeros(len(shares), 1 + CELLS, 1 + CELLS)
    whole[:, 1:, 1:], whole[:, 0, 0] = inside, 1
    side = int(CELLS**0.5)
    return AttentionMaps(Layer(1, "probabilities"), whole.expand(IMAGES, -1, -1, -1), 1, (side, side))


def shown_heads(outputs: Tensor, shares: list[float]) -> dict[int, list[Shown]]:
    """A block whose heads give outputs [heads images cells width] and look so far."""
    tokens = torch.cat(list(outputs), dim=-1)
    with_cls = torch.cat([noise(IMAGES, 1, tokens.shape[-1], seed=9), tokens], dim=1)
    return {1: [maps(shares), features(HEADS, with_cls)]}


def shown_blocks(*blocks: Tensor) -> dict[int, list[LayerFeatures]]:
    return {index: [features(Layer(index), one, cls=False)] for index, one in enumerate(blocks, start=1)}


def compared(  # type: ignore[no-untyped-def]
    place: Path,
    heads,
    shares: list[float],
    blocks,
    *,
    batch: int = IMAGES,
    refusal: str = "",
    pieces: int = 1,
) -> list[PairFindings]:
    problem = Locality(sources((IMAGES,), batch), config_of(STANDARD, "locality"))
    spec = transformer(len(shares))
    near = left_behind(problem, place / "t", shown_heads(heads, shares), spec=spec, pieces=pieces)
    convnet = replace(CONVNET, stages=(Stage(len(blocks), 8, 8),))
    conv = left_behind(problem, place / "c", shown_blocks(*blocks), spec=convnet)
    members = [Backbone(convnet, conv), Backbone(spec, near, refusal)]
    return list(problem.compare(members, "patch"))


def orthogonal(heads: int) -> Tensor:
    """Outputs of heads that share nothing and have one norm, [heads images cells width]."""
    values = torch.zeros(heads, IMAGES, CELLS, WIDTH)
    for head in range(heads):
        values[head, 4 * head : 4 * head + 4, 0, 0] = torch.tensor([1.0, -1.0, 1.0, -1.0])
    return values


def test_a_layer_that_is_the_nearest_head(tmp_path: Path) -> None:
    heads = orthogonal(4)
    layer = heads[0]
    whole, each = compared(tmp_path, heads, [0.0, 0.25, 0.5, 1.0], [layer, layer])
    assert (whole.first, whole.second, whole.metric) == (1, 0, "locality-rho")
    assert (whole.layers, whole.others) == ((HEADS,), (WHOLE_BACKBONE,))
    assert each.others == (Layer(1), Layer(2))
    arrays = whole.arrays
    np.testing.assert_allclose(arrays["head_cka"], [[1, 1], [0, 0], [0, 0], [0, 0]], atol=2e-3)
    # the four cells of 16 px each have one neighbour each at the distance 1
    np.testing.assert_allclose(arrays["distance"], [0, 4, 8, 16], atol=1e-4)
    assert arrays["heads"].tolist() == [[0], [1], [2], [3]]
    assert whole.value[0, 0] == pytest.approx(each.value.mean())


def test_near_heads_that_are_more_like_the_convnet(tmp_path: Path) -> None:
    heads, shares = orthogonal(4), [0.75, 0.5, 0.25, 0.0]
    layer = (heads * torch.tensor([0.5, 1, 1.5, 2]).view(-1, 1, 1, 1)).sum(0)
    down, _ = compared(tmp_path / "down", heads, shares, [layer])
    up, _ = compared(tmp_path / "up", heads, shares[::-1], [layer])
    assert down.value.tolist() == [[pytest.approx(-1)]]
    assert up.value.tolist() == [[pytest.approx(1)]]


def test_heads_may_come_in_any_batches(tmp_path: Path) -> None:
    heads = noise(4, IMAGES, CELLS, WIDTH)
    block = heads[1] + noise(IMAGES, CELLS, WIDTH, seed=1)
    shares = [0.1, 0.2, 0.3, 0.4]
    whole, _ = compared(tmp_path / "whole", heads, shares, [block], batch=16)
    parts, _ = compared(tmp_path / "parts", heads, shares, [block], batch=16, pieces=5)
    assert (parts.arrays["head_cka"] == whole.arrays["head_cka"]).all()
    np.testing.assert_allclose(parts.arrays["distance"], whole.arrays["distance"], rtol=1e-6)


@pytest.mark.parametrize("heads", [1, 2])
def test_too_few_heads_say_so(tmp_path: Path, heads: int) -> None:
    whole, _ = compared(
        tmp_path, noise(heads, IMAGES, CELLS, WIDTH), [0.1, 0.2][:heads], [noise(IMAGES, 4, 2)]
    )
    assert np.isnan(whole.value).all()
    assert whole.reason == f"a rank correlation takes 3 subsets of heads; there are {heads}"


def test_what_does_not_vary_or_is_not_finite_says_so(tmp_path: Path) -> None:
    heads, shares = orthogonal(4), [0.1, 0.2, 0.3, 0.4]
    still, _ = compared(tmp_path / "still", heads, shares, [torch.ones(IMAGES, CELLS, WIDTH)])
    assert still.reason == "heads or blocks do not vary or are not finite"
    broken = heads.clone()
    broken[2, 5] = float("nan")
    for place, one in (("nan", broken), ("inf", broken.nan_to_num(float("inf")))):
        found, _ = compared(tmp_path / place, one, shares, [heads[0]])
        assert np.isnan(found.value).all()
        assert found.reason == still.reason
    alike, _ = compared(tmp_path / "alike", heads, [0.1] * 4, [heads[0]])
    assert alike.reason == "all subsets of heads have one attention distance or one CKA"
    nowhere, _ = compared(tmp_path / "maps", heads, [0.1, 0.2, 0.3, float("nan")], [heads[0]])
    assert nowhere.reason == "attention probabilities are not finite"


def test_a_transformer_that_shows_no_attention_says_why(tmp_path: Path) -> None:
    (found,) = compared(tmp_path, orthogonal(4), [0.1] * 4, [noise(IMAGES, 4, 2)], refusal="it has no maps.")
    assert (found.first, found.second, found.reason) == (1, 0, "it has no maps.")
    assert np.isnan(found.value).all()


def test_transformers_are_compared_with_convnets_only() -> None:
    problem = Locality(sources((IMAGES,)), config_of(PAPER, "locality"))
    one, other = transformer(4), transformer(3)
    assert problem.compares(one, CONVNET)
    assert problem.compares(CONVNET, one)
    assert not problem.compares(one, other)
    assert not problem.compares(CONVNET, CONVNET)
    assert problem.feed.layers((), one) == (HEADS,)
    assert problem.feed.shown(HEADS) == (Layer(1, "probabilities"), HEADS)
    assert problem.feed.layers((Layer(3),), CONVNET) == (Layer(1), Layer(2), Layer(3))
    assert SIZE // 2 == 16


def hsic(outputs: torch.Tensor, blocks: torch.Tensor):  # type: ignore[no-untyped-def]
    """The three tables of HSIC of outputs [heads n dim] and blocks [blocks n dim]."""
    one, other = (u_centred(gram_matrix(each)) for each in (outputs, blocks))
    found = gather(one, one), gather(one, other), gather(other, other).diagonal()
    return tuple(each.numpy() for each in found)


def test_windows_of_a_quarter_of_the_heads_in_the_order_of_their_distance() -> None:
    sizes = [windows(np.zeros(heads)).shape[1] for heads in (1, 3, 4, 7, 8, 12, 16)]
    assert sizes == [1, 1, 1, 1, 2, 3, 4]
    distance = np.array([8.0, 1, 7, 2, 6, 3, 5, 4])
    assert windows(distance)[:3].tolist() == [[1, 3], [3, 5], [5, 7]]
    assert windows(distance).shape == (7, 2)


def test_windows_equal_the_features_of_their_heads_side_by_side() -> None:
    generator = torch.Generator().manual_seed(3)
    heads = torch.randn(8, 40, 5, generator=generator, dtype=torch.float64)
    blocks = torch.randn(2, 40, 6, generator=generator, dtype=torch.float64) + heads[:2, :, :1]
    distance = np.random.default_rng(0).uniform(size=8)
    found = subsets_of(distance, *hsic(heads, blocks))
    for row, chosen in enumerate(found.heads):
        together = torch.cat([heads[head] for head in chosen], dim=1)
        expected = [cka(together, block) for block in blocks]
        np.testing.assert_allclose(found.cka[row], expected, atol=1e-9)
        assert found.distance[row] == pytest.approx(distance[chosen].mean())

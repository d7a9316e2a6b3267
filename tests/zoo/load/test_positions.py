"""Images of other sizes than those of the training: rules for position embeddings, and fingerprints."""

import math
from dataclasses import replace
from functools import cache as once
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.ndimage import zoom
from torch import Tensor

from layerboard.benchmark.forms.request import InterpolationChoice
from layerboard.benchmark.plan.backbones import with_rule
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.adapters import fitted_positions
from layerboard.zoo.load.backbone import identify
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Interpolation
from layerboard.zoo.spec.origin import ORIGINAL
from tests.zoo.conftest import Loader, Small
from tests.zoo.reduced import grids_of, pixels

RULES: tuple[Interpolation, ...] = ("huggingface", "dino", "timm", "google")


def cubic(distance: float, a: float = -0.75) -> float:
    """Keys' cubic convolution kernel."""
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


@once
def weights(count: int, side: int, scale: float) -> NDArray[np.float64]:
    """What each of ``side`` points contributes to each of ``count``, [count side]; borders are repeated."""
    out = np.zeros((count, side))
    for index in range(count):
        centre = (index + 0.5) / scale - 0.5
        first = math.floor(centre)
        for point in range(first - 1, first + 3):
            out[index, min(max(point, 0), side - 1)] += cubic(centre - point)
    return out


@once
def antialiased(count: int, side: int) -> NDArray[np.float64]:
    """The same, a = -0.5, with a kernel as wide as the coarser grid's cells, renormalised at borders."""
    wide = max(side / count, 1.0)
    centres = (np.arange(count)[:, None] + 0.5) * side / count
    distances = (np.arange(side)[None] + 0.5 - centres) / wide
    out = np.vectorize(lambda distance: cubic(distance, -0.5))(distances)
    return out / out.sum(1, keepdims=True)  # type: ignore[no-any-return]


def resized(table: Tensor, prefix: int, cells: tuple[int, int], offset: float | None) -> Tensor:
    """Bicubic resizing of a square grid by (cells + offset) / side, antialiased if None, point by point."""
    side = math.isqrt(len(table) - prefix)
    grid = table[prefix:].double().numpy().reshape(side, side, -1)
    down, right = (
        antialiased(count, side) if offset is None else weights(count, side, (count + offset) / side)
        for count in cells
    )
    rows = np.einsum("ia,jb,abd->ijd", down, right, grid).reshape(cells[0] * cells[1], -1)
    return torch.cat([table[:prefix], torch.from_numpy(rows).float()])


def test_the_training_grid_is_left_alone() -> None:
    table = torch.randn(1, 17, 6)
    assert all(fitted_positions(table, (4, 4), rule) is table for rule in RULES)


RULE_OF = {
    "fs-s16": None,
    "deit-b16-distilled": 0.0,
    "clip-b16": 0.0,
    "openclip-b16": None,
    "dino-s16": 0.1,
    "moco-b16": 0.0,
    "mae-b16": 0.0,
    "dinov2-s14": 0.1,
    "dinov2-s14-reg": None,
    "siglip-b16": 0.0,
    "ibot-s16": 0.1,
    "msn-s16": 0.0,
}
"""What the authors add to the number of cells before they resize; None where they antialias instead."""

SIZES = ((160, 160), (224, 224), (448, 448), (224, 320))
"""Pixels; for a patch of 14 px the nearest multiples of it."""


@pytest.mark.parametrize("name", RULE_OF)
def test_entries_have_the_rule_of_their_authors(
    name: str, small: Small, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks with the full table of 224 px (DINOv2: 518 px) whose layer 0 is the positions alone."""
    monkeypatch.setattr("tests.zoo.published.SIDE", 14)
    reduced = small(name)
    backbone = loader(reduced.spec)
    assert isinstance(backbone, HookedBackbone)
    body: Any = backbone._network.body
    patch, embeddings = reduced.spec.patch_size, body.embeddings
    for key, weight in embeddings.named_parameters():
        if "patch_embed" in key:
            weight.zero_()
    table = getattr(embeddings, "position_embeddings", None)
    table = embeddings.position_embedding.weight if table is None else table[0]
    prefix = len(table) - math.isqrt(len(table)) ** 2
    assert len(table) == prefix + (37 * 37 if name.startswith("dinov2") else 14 * 14)
    norm = getattr(body, "pre_layrnorm", torch.nn.Identity())
    for size in SIZES:
        rows, columns = (round(side / patch) for side in size)
        entered = grids_of(backbone, pixels(1, rows * patch, columns * patch), reduced.spec.layers[:1])["0"]
        is_trained = prefix + rows * columns == len(table)
        whole = table if is_trained else resized(table, prefix, (rows, columns), RULE_OF[name])
        expected = norm(whole[prefix:])
        torch.testing.assert_close(entered.flatten(0, 2), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cells", [(5, 7), (3, 3), (14, 13), (24, 24), (2, 37)])
@pytest.mark.parametrize("side", [14, 16])
def test_googles_rule_is_scipys_zoom(cells: tuple[int, int], side: int) -> None:
    table = torch.randn(1 + side * side, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    grid = table[1:].numpy().reshape(side, side, 6)
    expected = zoom(grid, (cells[0] / side, cells[1] / side, 1), order=1).reshape(-1, 6)
    found = fitted_positions(table[None], cells, "google")[0]
    torch.testing.assert_close(found[1:], torch.from_numpy(expected), rtol=1e-5, atol=1e-5)
    assert torch.equal(found[0], table[0])


@pytest.mark.parametrize("rule", RULES[:3])  # which are bicubic
@pytest.mark.parametrize("cells", [(10, 10), (16, 16), (20, 20), (28, 28), (32, 32), (16, 23), (2, 8)])
@pytest.mark.parametrize(("side", "prefix"), [(14, 1), (37, 1), (4, 0), (4, 2)])
def test_rules_point_by_point(rule: Interpolation, cells: tuple[int, int], side: int, prefix: int) -> None:
    table = torch.randn(prefix + side * side, 3, generator=torch.Generator().manual_seed(0))
    offsets = {"huggingface": 0.0, "dino": 0.1, "timm": None}
    found = fitted_positions(table[None], cells, rule)[0]
    torch.testing.assert_close(found, resized(table, prefix, cells, offsets.pop(rule)), rtol=1e-4, atol=1e-4)
    for offset in offsets.values():
        assert not torch.allclose(found, resized(table, prefix, cells, offset), atol=1e-3)


def first_layer(spec: BackboneSpec, images: Tensor, loader: Loader) -> Tensor:
    return grids_of(loader(spec), images, spec.layers[:1])["0"]


@pytest.mark.parametrize(
    "name",
    [
        *("beit-b16", "data2vec-b16", "swin-t", "swinv2-t", "dinov3-s16", "capi-l14-in1k", "c-radio-v3-h16"),
        *("vjepa2-l16", "mae-b16", "sam-b16", "hiera-t", "tipsv2-b14", "pe-core-b16", "aimv2-l14"),
        *("metaclip2-h14", "ijepa-h14", "dinov2-s14", "siglip-b16", "deit-b16-distilled", "resnet50"),
    ],
)
def test_no_record_names_a_rule_that_changes_nothing(name: str, small: Small, loader: Loader) -> None:
    """Asked of an entry, and of its directory alone, which tells its type."""
    reduced = small(name).spec
    side = reduced.patch_size
    images = pixels(1, 9 * side, 7 * side)
    both = (reduced, replace(reduced, interpolation="timm"))
    changes = not torch.equal(*(first_layer(each, images, loader) for each in both))
    specs = [reduced] if reduced.origin == ORIGINAL else [reduced, infer(reduced.repository, None, None)]
    for spec in specs:
        assert with_rule(spec, "timm") == (replace(spec, interpolation="timm") if changes else spec)


def test_fingerprints_tell_rules_apart_and_keep_weights(cache: Path, loader: Loader) -> None:
    (spec,) = find(["mini-dino"])
    own, other, larger = (
        identify(one, cache_dir=cache)
        for one in (spec, replace(spec, interpolation="dino"), replace(spec, input_size=96))
    )
    assert own.fingerprint != other.fingerprint
    assert own.revision == other.revision == larger.revision  # weights are drawn at the entry's own size
    images = pixels(1, 64, 64)
    assert torch.equal(*(first_layer(replace(spec, input_size=side), images, loader) for side in (64, 96)))


def test_a_backbone_of_one_size_says_so(loader: Loader) -> None:
    backbone = loader(find(["mini-random"])[0])
    backbone.spec = replace(backbone.spec, fixed_size=True)  # type: ignore[misc]
    backbone.visit(pixels(1, 64, 64), lambda _: None)
    with pytest.raises(InputError, match="takes images of 64 x 64 px only, not 72 x 64 px"):
        backbone.visit(pixels(1, 64, 72), lambda _: None)


@pytest.mark.parametrize(
    ("choice", "rules"),
    [
        ("auto", ("dino", "timm", "dino", "huggingface", "huggingface", "huggingface")),
        ("timm", ("timm", "timm", "timm", "timm", "timm", "huggingface")),
        ("huggingface", ("huggingface",) * 6),
    ],
)
def test_the_option_overrides_the_rule_of_the_entry(
    choice: InterpolationChoice, rules: tuple[str, ...]
) -> None:
    specs = [find([name])[0] for name in ("dino-b16", "fs-b16", "dinov2-b14", "dinov2-b14-reg", "mini-dino")]
    found = [with_rule(spec, choice) for spec in (*specs, *find(["random"]))]
    assert tuple(spec.interpolation for spec in found) == rules

"""Images of other sizes than those of the training: rules for position embeddings, and fingerprints."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.zoo import originals
from tests.zoo.conftest import Loader
from tests.zoo.load.test_architecture import flat
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import Reduced, normalised, pixels
from zoo.errors import InputError
from zoo.load.identity import identify
from zoo.load.infer import infer
from zoo.load.positions import dino_positions
from zoo.registry import find
from zoo.spec import BackboneSpec, Interpolation

RULES: tuple[Interpolation, ...] = ("huggingface", "dino")


def cubic(distance: float) -> float:
    """Keys' cubic convolution kernel with a = -0.75."""
    a, x = -0.75, abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def weights(count: int, side: int, scale: float) -> NDArray[np.float64]:
    """What each of ``side`` points contributes to each of ``count``, [count side]; borders are repeated."""
    out = np.zeros((count, side))
    for index in range(count):
        centre = (index + 0.5) / scale - 0.5
        first = math.floor(centre)
        for point in range(first - 1, first + 3):
            out[index, min(max(point, 0), side - 1)] += cubic(centre - point)
    return out


def resized(table: Tensor, prefix: int, cells: tuple[int, int], offset: float) -> Tensor:
    """Bicubic resizing of a square grid by (cells + offset) / side, point by point."""
    side = math.isqrt(len(table) - prefix)
    grid = table[prefix:].double().numpy().reshape(side, side, -1)
    down, right = (weights(count, side, (count + offset) / side) for count in cells)
    rows = np.einsum("ia,jb,abd->ijd", down, right, grid).reshape(cells[0] * cells[1], -1)
    return torch.cat([table[:prefix], torch.from_numpy(rows).float()])


@pytest.mark.parametrize("prefix", [0, 1, 2])
@pytest.mark.parametrize("cells", [(5, 7), (3, 3), (4, 9), (14, 13), (2, 8)])
def test_dinos_rule_point_by_point(prefix: int, cells: tuple[int, int]) -> None:
    table = torch.randn(prefix + 16, 6, generator=torch.Generator().manual_seed(0))
    found = dino_positions(table[None], cells)
    torch.testing.assert_close(found[0], resized(table, prefix, cells, 0.1), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found[0], resized(table, prefix, cells, 0.0), atol=1e-3)


def test_the_training_grid_is_left_alone() -> None:
    table = torch.randn(1, 17, 6)
    assert dino_positions(table, (4, 4)) is table


@pytest.mark.parametrize("name", ["fs-b16", "clip-b16", "dino-s16", "mae-b16"])
def test_dinos_rule_reaches_every_layer(
    name: str, small: Callable[[str], Reduced], loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reduced = small(name)
    images = pixels(2, 5 * reduced.spec.patch_size, 7 * reduced.spec.patch_size)
    monkeypatch.setattr(
        originals, "positions", lambda table, cells, prefix=1: resized(table, prefix, cells, 0.1)
    )
    expected = reduced.reference(normalised(reduced.spec, images))
    seen: list[Tensor] = []
    loader(replace(reduced.spec, interpolation="dino")).visit(images, lambda f: seen.append(flat(f)))
    for found, reference in zip(seen, expected, strict=True):
        torch.testing.assert_close(found, reference, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Dinov2Model", {}),
        ("Dinov2WithRegistersModel", {}),
        ("SiglipVisionModel", {}),
        ("Aimv2VisionModel", {}),
        ("MetaClip2VisionModel", {}),
        ("IJepaModel", {}),
        ("DeiTModel", {}),
    ],
)
def test_dinos_rule_changes_other_sizes_only(
    name: str, options: dict[str, object], tmp_path: Path, loader: Loader
) -> None:
    save(tmp_path, name, **options)
    spec = infer(str(tmp_path), None, None)
    for images, same in ((pixels(1, 56, 56), True), (pixels(1, 42, 70), False)):
        both = [first_layer(replace(spec, interpolation=rule), images, loader) for rule in RULES]
        assert torch.equal(*both) is same


def first_layer(spec: BackboneSpec, images: Tensor, loader: Loader) -> Tensor:
    seen: list[Tensor] = []
    loader(spec).visit(images, lambda f: seen.append(f.grid.clone()), spec.layers[:1])
    return seen[0]


@pytest.mark.parametrize("name", ["mini-beit", "mini-resnet"])
def test_networks_without_absolute_positions_are_the_same(name: str, loader: Loader) -> None:
    (spec,) = find([name])
    images = pixels(1, 80, 48)
    both = [first_layer(replace(spec, interpolation=rule), images, loader) for rule in RULES]
    assert torch.equal(*both)


def test_fingerprints_tell_rules_apart_and_keep_weights(cache: Path, loader: Loader) -> None:
    (spec,) = find(["mini-dino"])
    own, other, larger = (
        identify(one, dtype=torch.float32, cache_dir=cache)
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

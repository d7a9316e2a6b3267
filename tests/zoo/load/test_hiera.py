"""Hiera: every layer against plain torch, grids that are in place, what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from layerboard.zoo.errors import InputError
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.adapters import fitted_positions
from layerboard.zoo.load.infer import infer
from layerboard.zoo.spec import BackboneSpec, Layer, Stage
from tests.zoo import today_hub
from tests.zoo.conftest import Loader
from tests.zoo.layouts import Tensors
from tests.zoo.load.test_convert import agree, layers
from tests.zoo.load.test_today import stored
from tests.zoo.reduced import grids_of, normalised, pixels

HEADS = [1, 2, 2, 4]
SHAPE: dict[str, Any] = {"embed_dim": 8, "depths": [2, 2, 2, 1], "num_heads": HEADS, "image_size": [64, 64]}
STAGES = (Stage(2, 8, 4), Stage(2, 16, 8), Stage(2, 32, 16), Stage(1, 64, 32))
LOCAL = 5
"""Blocks up to the one that pools what the second stage gives attend inside units."""


def written(folder: Path, name: str = "HieraModel", **options: Any) -> tuple[BackboneSpec, Tensors]:
    """A small network of a class of transformers on disk: what is inferred of it, and its tensors."""
    model_class = getattr(transformers, name)
    tensors = stored(model_class(transformers.HieraConfig(**(SHAPE | options))), folder, "")
    return infer(str(folder), None, None), tensors


@pytest.mark.parametrize("name", ["HieraModel", "HieraForImageClassification"])
@pytest.mark.parametrize("size", [(64, 64), (96, 160)])
def test_every_layer(name: str, size: tuple[int, int], tmp_path: Path, loader: Loader) -> None:
    """Against an implementation that never leaves the order of rows and columns."""
    spec, tensors = written(tmp_path, name)
    assert (spec.family, spec.stages, spec.heads) == ("Hiera", STAGES, 4)
    assert (spec.prefix_tokens, spec.has_cls, spec.has_final, spec.input_size) == (0, False, False, 64)
    images = pixels(2, *size)
    assert len(spec.layers) == 8
    agree(loader(spec), today_hub.hiera(tensors, normalised(spec, images), HEADS), images)


@pytest.mark.parametrize("pixel", [(0, 0), (31, 32), (37, 70), (63, 95)])
def test_a_cell_sees_the_pixels_at_its_place(pixel: tuple[int, int], tmp_path: Path, loader: Loader) -> None:
    """One pixel changes the cells whose filters reach it, then all cells of their units, and no others."""
    spec, _ = written(tmp_path)
    images = pixels(2, 64, 96)
    images[1] = images[0]
    images[1, :, pixel[0], pixel[1]] = 255 - images[0, :, pixel[0], pixel[1]]
    grids = grids_of(loader(spec), images).values()
    changed = [(one != other).any(-1) for one, other in grids]
    reached = torch.zeros(16, 24, dtype=torch.bool)
    for row in range(16):
        for column in range(24):  # filters of 7 pixels, 4 apart, 3 beyond the edge
            reached[row, column] = abs(4 * row - pixel[0]) <= 3 and abs(4 * column - pixel[1]) <= 3
    assert torch.equal(changed[0], reached)
    units = nn.functional.max_pool2d(reached[None].float(), 8)[0].bool()
    assert 0 < units.sum() < units.numel()
    for index in range(1, LOCAL + 1):
        side = 32 // spec.stage_of(Layer(index)).stride
        assert torch.equal(changed[index], units.repeat_interleave(side, 0).repeat_interleave(side, 1))
    assert all(each.all() for each in changed[LOCAL + 1 :])


def test_a_field_lies_in_the_unit_of_the_centre(tmp_path: Path, loader: Loader) -> None:
    spec, _ = written(tmp_path)
    images = pixels(1, 96, 96)
    asked = (Layer(0), Layer(LOCAL), Layer(7))
    stem, local, last = loader(spec).receptive_fields(images, asked, lambda width: range(0, width, 5))
    assert (stem.cells, local.cells, last.cells) == ((24, 24), (6, 6), (3, 3))
    inside = torch.zeros(96, 96, dtype=torch.bool)
    inside[45:52, 45:52] = True  # the filter of cell 12 of 24
    assert torch.equal(stem.strength > 0, inside)
    inside[:] = False
    inside[29:64, 29:64] = True  # the middle one of 3 x 3 units, and what its filters see beyond
    assert torch.equal(local.strength > 0, inside)
    assert (last.strength > 0).all()


def test_weights(tmp_path: Path, loader: Loader) -> None:
    spec, tensors = written(tmp_path)
    weights = loader(spec).weights()
    assert weights.filters is not None
    assert weights.positions is not None
    torch.testing.assert_close(weights.filters, tensors["embeddings.patch_embeddings.projection.weight"])
    assert torch.equal(weights.positions.flatten(0, 1), tensors["embeddings.position_embeddings"][0])
    assert (weights.position_bias, weights.positions.shape) == (None, (16, 16, 8))


@pytest.mark.parametrize("rule", ["huggingface", "dino", "timm"])
def test_positions_are_fitted_to_the_cells_of_the_first_stage(
    rule: str, tmp_path: Path, loader: Loader
) -> None:
    spec, tensors = written(tmp_path)
    spec = replace(spec, interpolation=rule)  # type: ignore[arg-type]
    images = pixels(1, 64, 96)
    backbone = loader(spec)
    entered = layers(backbone, images)[0]
    table = backbone._network.body.embeddings.position_embeddings  # type: ignore[attr-defined]
    table.zero_()
    fitted = fitted_positions(tensors["embeddings.position_embeddings"], (16, 24), spec.interpolation)
    torch.testing.assert_close(entered - layers(backbone, images)[0], fitted, rtol=1e-4, atol=1e-4)


def message(backbone: Backbone, height: int, layer: Layer) -> str:
    with pytest.raises(InputError) as caught:
        backbone.visit(pixels(1, height, 64), lambda _: None, (layer,))
    return str(caught.value)


def test_what_is_refused(tmp_path: Path, loader: Loader) -> None:
    """Attention is inside units, or pooled, so that there is no table of all cells by all cells."""
    backbone = loader(written(tmp_path)[0])
    assert "sides are multiples of 32 px, not 64 x 48" in message(backbone, 48, Layer(1))
    assert "whose attention probabilities cannot be read" in message(backbone, 64, Layer(1, "probabilities"))
    assert message(backbone, 64, Layer(1, "norm1")).endswith("its taps are input and block.")


def test_what_enters_a_block_that_pools(tmp_path: Path, loader: Loader) -> None:
    """It is what the stage before gave, in the places of that stage."""
    spec, _ = written(tmp_path)
    asked = (Layer(2), Layer(3, "input"), Layer(7, "input"), Layer(6))
    grids = grids_of(loader(spec), pixels(1, 64, 96), asked)
    assert torch.equal(grids["2"], grids["3.input"])
    assert torch.equal(grids["6"], grids["7.input"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_query_pool": 2}, "num_query_pool is 2, not 3; .* give the one without -mae, which holds the"),
        ({"masked_unit_size": [16, 16]}, r"masked_unit_size is \(16, 16\), not \(8, 8\)"),
        ({"patch_stride": [4, 2]}, r"patch_stride is \(4, 2\), not \(4, 4\)"),
    ],
)
def test_other_poolings(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    transformers.HieraConfig(**(SHAPE | options)).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(InputError, match=words):
        infer(str(tmp_path), None, None)

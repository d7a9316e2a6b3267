"""Networks whose grid gets coarser from stage to stage, against the hidden states of transformers."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from layerboard.zoo.load.infer import infer
from layerboard.zoo.spec import Stage
from tests.zoo.conftest import Loader, Small
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import grids_of, normalised, pixels

TREE = {"image_size": 64, "patch_size": 4, "embed_dim": 16, "depths": [2, 2, 2], "mlp_ratio": 2.0}
WINDOWS = TREE | {"num_heads": [1, 2, 4], "window_size": 4}
FOCAL = TREE | {"focal_levels": [2, 2, 2], "focal_windows": [3, 3, 3]}
TOKENS = {"SwinModel": WINDOWS, "Swinv2Model": WINDOWS, "FocalNetModel": FOCAL}
STAGES = (Stage(2, 16, 4), Stage(2, 32, 8), Stage(2, 64, 16))
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def before_merging(model: PreTrainedModel, tokens: Tensor, dims: tuple[int, int]) -> tuple[Tensor, ...]:
    """Maps of the stem and of the end of each stage; FocalNet fails to give them for grids of other sizes."""
    out = model.encoder(
        tokens, dims, output_hidden_states=True, output_hidden_states_before_downsampling=True
    )
    return tuple(out.reshaped_hidden_states)


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("size", [(64, 64), (80, 112)])
def test_tokens_of_every_stage(name: str, size: tuple[int, int], tmp_path: Path, loader: Loader) -> None:
    model = save(tmp_path, name, **TOKENS[name])
    spec = infer(str(tmp_path), None, None)
    assert (spec.stages, spec.prefix_tokens, spec.has_cls, spec.has_final) == (STAGES, 0, False, True)
    assert (spec.heads, spec.input_size) == (None if name == "FocalNetModel" else 4, 64)
    images = pixels(2, *size)
    seen = grids_of(loader(spec), images)
    with torch.no_grad():
        entered, dims = model.embeddings(normalised(spec, images))
        final = model(normalised(spec, images)).last_hidden_state
        maps = () if name == "FocalNetModel" else before_merging(model, entered, dims)
    torch.testing.assert_close(seen["0"].flatten(1, 2), entered, **CLOSE)
    for layer, expected in zip(("0", "2", "4", "6"), maps, strict=False):
        torch.testing.assert_close(seen[layer], expected.permute(0, 2, 3, 1), **CLOSE)
    torch.testing.assert_close(seen["final"].flatten(1, 2), final, **CLOSE)


@pytest.mark.parametrize("name", TOKENS)
def test_each_block_follows_from_the_one_before(name: str, tmp_path: Path, loader: Loader) -> None:
    model = save(tmp_path, name, **TOKENS[name])
    seen = grids_of(loader(infer(str(tmp_path), None, None)), pixels(1, 64, 96))
    stages = model.encoder.stages if name == "FocalNetModel" else model.encoder.layers
    for number, stage in enumerate(stages):
        blocks = stage.layers if name == "FocalNetModel" else stage.blocks
        before, after = seen[str(2 * number + 1)], seen[str(2 * number + 2)]
        with torch.no_grad():
            out = blocks[1](before.flatten(1, 2), tuple(before.shape[1:3]))
        tokens = out if isinstance(out, Tensor) else out[0]
        torch.testing.assert_close(after.flatten(1, 2), tokens, **CLOSE)


def test_swin_does_not_remember_small_images(tmp_path: Path, loader: Loader) -> None:
    save(tmp_path, "SwinModel", **WINDOWS)
    spec = infer(str(tmp_path), None, None)
    backbone, images = loader(spec), pixels(2, 128, 128)
    before = grids_of(backbone, images)
    backbone.visit(pixels(1, 16, 48), lambda _: None)
    after = grids_of(backbone, images)
    assert all(torch.equal(before[layer], after[layer]) for layer in before)


def test_swin_pads_grids_that_are_smaller_than_a_window(tmp_path: Path, loader: Loader) -> None:
    model = save(tmp_path, "SwinModel", **(WINDOWS | {"depths": [1, 1, 1]}))  # No block shifts its windows.
    spec = infer(str(tmp_path), None, None)
    images = pixels(2, 32, 48)
    seen = grids_of(loader(spec), images)
    with torch.no_grad():
        entered, dims = model.embeddings(normalised(spec, images))
        out = model.encoder(entered, dims, always_partition=True)
    last = model.layernorm(out.last_hidden_state)
    torch.testing.assert_close(seen["final"].flatten(1, 2), last, **CLOSE)


MAPS = {"hidden_sizes": [32, 64], "depths": [1, 2]}


@pytest.mark.parametrize(
    ("name", "options", "stem"),
    [
        ("BitModel", MAPS | {"embedding_size": 16, "num_groups": 4}, 16),
        ("DINOv3ConvNextModel", MAPS, None),
        ("ConvNextModel", MAPS | {"num_stages": 2}, None),
        ("ConvNextV2Model", MAPS | {"num_stages": 2}, None),
        ("ResNetModel", MAPS | {"embedding_size": 16}, 16),
    ],
)
def test_maps_of_every_stage(
    name: str, options: dict[str, object], stem: int | None, tmp_path: Path, loader: Loader
) -> None:
    model = save(tmp_path, name, **options)
    spec = infer(str(tmp_path), None, None)
    assert spec.stages == (Stage(1, 32, 4), Stage(2, 64, 8))
    assert (spec.heads, spec.stem_width, spec.input_size) == (None, stem, 224)
    assert (spec.has_cls, spec.prefix_tokens) == (False, 0)
    assert spec.has_final == (name in ("BitModel", "DINOv3ConvNextModel"))
    images = pixels(2, 64, 96)
    seen = grids_of(loader(spec), images)
    with torch.no_grad():
        out = model(normalised(spec, images), output_hidden_states=True)
    for layer, maps in zip(("1", "3"), out.hidden_states[-2:], strict=True):
        torch.testing.assert_close(seen[layer], maps.permute(0, 2, 3, 1), **CLOSE)
    if spec.has_final:
        last = out.last_hidden_state
        final = last.permute(0, 2, 3, 1).flatten(1, 2) if last.ndim == 4 else last[:, 1:]
        torch.testing.assert_close(seen["final"].flatten(1, 2), final, **CLOSE)


def test_bit_without_preactivation_has_no_final_norm(tmp_path: Path) -> None:
    save(tmp_path, "BitModel", hidden_sizes=[32, 64], depths=[1, 1], num_groups=4, layer_type="bottleneck")
    assert not infer(str(tmp_path), None, None).has_final


def test_aimv2_fits_its_positions_to_the_image(small: Small, loader: Loader) -> None:
    """What enters block 1, less what enters it without positions, is the checkpoint's table, resized."""
    reduced = small("aimv2-l14")
    backbone = loader(reduced.spec)
    patch = reduced.spec.patch_size
    images = pixels(1, 3 * patch, 6 * patch)
    embeddings = backbone._network.body.embeddings  # type: ignore[attr-defined]
    table = embeddings.position_embedding.weight.clone()
    entered = grids_of(backbone, images)["0"]
    embeddings.position_embedding.weight.zero_()
    without = grids_of(backbone, images)["0"]
    square = table.T.reshape(1, -1, 4, 4)
    fitted = torch.nn.functional.interpolate(square, size=(3, 6), mode="bicubic", align_corners=False)
    torch.testing.assert_close(entered - without, fitted.permute(0, 2, 3, 1), **CLOSE)

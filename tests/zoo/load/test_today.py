"""Families of today: every layer against plain torch, and what their authors' configurations say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

from layerboard.zoo.entries.family import NetworkSize
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.adapters import fitted_positions
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.config import RADIO_SIZES, read_network
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Dtype, Layer, Stage
from tests.zoo import today_hub
from tests.zoo.conftest import Loader, Small
from tests.zoo.layouts import Tensors, fill
from tests.zoo.load.test_convert import agree, layers
from tests.zoo.published import publish
from tests.zoo.reduced import Published, grids_of, normalised, pixels

ORIGINALS = {"c-radio-v4-h16": today_hub.radio, "c-radio-v3-h16": today_hub.radio}
ORIGINALS |= {"tipsv2-b14": today_hub.tips, "tipsv2-g14": today_hub.tips}


def compare(spec: BackboneSpec, tensors: Tensors, cells: tuple[int, int], loader: Loader) -> None:
    """Every layer of images of that many patches, of an entry and of its original."""
    images = pixels(2, cells[0] * spec.patch_size, cells[1] * spec.patch_size)
    original = ORIGINALS[spec.name](tensors, normalised(spec, images), spec.heads or 0)
    agree(loader(spec), original, images)


@pytest.mark.parametrize("name", ORIGINALS)
@pytest.mark.parametrize("cells", [(4, 4), (3, 5), (7, 4)])
def test_every_layer_is_that_of_the_original(
    name: str, cells: tuple[int, int], small: Small, loader: Loader
) -> None:
    """The files have the authors' names; TIPS is compared on squares, which its reference is written for."""
    reduced = small(name)
    tensors = load_file(reduced.folder / "model.safetensors")
    assert any(key.startswith(("radio_model.model.blocks.", "vision_encoder.blocks.")) for key in tensors)
    cells = (cells[0], cells[0]) if name.startswith("tips") else cells
    compare(reduced.spec, tensors, cells, loader)


def authors_config(**options: object) -> dict[str, Any]:
    """What is read of a RADIO repository's ``config.json``, without its many options of the training."""
    names = ("clip", "siglip2-g", "dino_v2", "sam")
    args: dict[str, object] = {
        "model": "vit_huge_patch16_224",
        "cls_token_per_teacher": True,
        "cpe_max_size": 2048,
        "teachers": [{"name": name, "use_summary": name != "sam"} for name in names],
    }
    return {
        "architectures": ["RADIOModel"],
        "args": args | options,
        "patch_size": 16,
        "version": "c-radio_v3-h",
    }


@pytest.mark.parametrize(
    ("options", "prefix"),
    [
        ({"cpe_num_registers": 4}, 8),
        ({"cpe_num_registers": None, "register_multiple": 10}, 10),
        ({"register_multiple": 8}, 8),
        ({"register_multiple": 4}, 8),
        ({}, 4),
        ({"cls_token_per_teacher": False}, 1),
        ({"teachers": [{"name": "sam"}, {"name": "sam"}, {"name": "clip"}]}, 2),
    ],
)
def test_prefix_tokens_of_the_authors_configuration(options: dict[str, object], prefix: int) -> None:
    _, _, facts = read_network(authors_config(**options), Path("config.json"))
    assert facts.prefix_tokens == prefix
    assert (facts.stages, facts.heads, facts.mlp_width) == ((Stage(32, 1280, 16),), 16, 5120)
    assert not facts.has_final


def test_the_authors_configuration_is_that_of_the_entry() -> None:
    (spec,) = find(["c-radio-v3-h16"])
    _, config, facts = read_network(authors_config(cpe_num_registers=4), Path("config.json"))
    assert (facts.prefix_tokens, facts.stages, facts.heads) == (spec.prefix_tokens, spec.stages, spec.heads)
    assert config.max_img_size == 2048


@pytest.mark.parametrize(
    ("model", "inner"), [("vit_so400m_patch16_224", 4304), ("vit_so400m_v2_patch16_224", 4320)]
)
def test_sizes_that_no_entry_has(model: str, inner: int) -> None:
    _, _, facts = read_network(authors_config(model=model), Path("config.json"))
    assert (facts.stages, facts.mlp_width) == ((Stage(27, 1152, 16),), inner)


@pytest.mark.parametrize(
    "options",
    [
        *({"model": name} for name in ("eradio", "dinov2_vitg14_reg", "vit_vast_patch16_224", None)),
        {"cpe_max_size": None},
    ],
)
def test_networks_of_radio_that_are_not_supported(options: dict[str, object]) -> None:
    with pytest.raises(
        InputError, match=r"describes a RADIO network .* is not supported; supported are Vision"
    ):
        read_network(authors_config(**options), Path("config.json"))


@pytest.mark.parametrize("broken", [{"teachers": [{}]}, {"register_multiple": "many"}, {"teachers": None}])
def test_authors_configurations_that_make_no_sense(broken: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"config.json (describes no network|gives a number)"):
        read_network(authors_config(**broken), Path("config.json"))


def test_a_repository_of_radio_as_its_authors_publish_it(
    small: Small, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their configuration, and with what their class stores beside the network."""
    reduced = small("c-radio-v4-h16")
    spec, folder = reduced.spec, reduced.folder
    monkeypatch.setitem(RADIO_SIZES, "huge", NetworkSize((3,), (64,), 16, mlp=256))
    tensors = load_file(folder / "model.safetensors")
    more = {"radio_model.adaptors.clip.head.weight": torch.ones(2, 2)}
    more |= {"radio_model.feature_normalizer.mean": torch.ones(2)}
    save_file(tensors | more, folder / "model.safetensors")
    names = [{"name": name, "use_summary": name != "sam3"} for name in ("siglip2-g", "dino_v3_7b", "sam3")]
    config = authors_config(teachers=names, register_multiple=10, cpe_max_size=2 * spec.input_size)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps({"do_normalize": False}))
    compare(spec, tensors, (5, 3), loader)
    inferred = infer(str(folder), None, None)
    assert (inferred.family, inferred.mean, inferred.std) == ("RADIO", spec.mean, spec.std)
    assert (inferred.prefix_tokens, inferred.has_cls, inferred.has_final) == (10, True, False)
    with pytest.raises(InputError, match="prefix tokens: 10, not 8"):
        loader(replace(spec, prefix_tokens=8))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_angles_are_exact_in_networks_of_half_precision(dtype: Dtype, tmp_path: Path, cache: Path) -> None:
    published: Published = publish("capi", tmp_path)
    backbone = load_backbone(
        replace(published.spec, dtype=dtype), device=torch.device("cpu"), cache_dir=cache
    )
    assert isinstance(backbone, HookedBackbone)
    found = backbone._network.blocks[0].get_submodule("rotary").get_buffer("frequencies")
    assert torch.equal(found, published.tensors["encoder.blocks.0.residual1.fn.rope.freqs"])
    assert backbone._network.blocks[0].get_parameter("mlp.fc1.weight").dtype == getattr(torch, dtype)


VJEPA = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "crop_size": 64}
VJEPA |= {"pred_hidden_size": 24, "pred_num_attention_heads": 2, "pred_num_hidden_layers": 1}


def stored(model: transformers.PreTrainedModel, folder: Path, part: str) -> Tensors:
    """Save a model with random tensors in a part of it; gives that part's."""
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    drawn = fill({name: tuple(t.shape) for name, t in tensors.items() if name.startswith(part)})
    save_file(tensors | drawn, folder / "model.safetensors", metadata={"format": "pt"})
    return drawn


@pytest.mark.parametrize("cells", [(16, 16), (17, 15), (3, 5)])
def test_every_layer_of_sam(cells: tuple[int, int], tmp_path: Path, loader: Loader) -> None:
    """A whole model's repository; windows of 14 cells, of which grids of 17 are no multiple."""
    shape = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "mlp_dim": 64}
    vision = shape | {"image_size": 256, "global_attn_indexes": [1]}
    decoder = {"hidden_size": 256, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_dim": 8}
    config = transformers.SamConfig(vision_config=vision, mask_decoder_config=decoder)
    encoder = stored(transformers.SamModel(config), tmp_path, "vision_encoder.")
    spec = infer(str(tmp_path), None, None)
    assert (spec.family, spec.prefix_tokens, spec.has_cls, spec.has_final) == ("SAM", 0, False, False)
    images = pixels(2, cells[0] * 16, cells[1] * 16)
    backbone = loader(spec)
    agree(backbone, today_hub.sam(encoder, normalised(spec, images), 4), images)
    positions = backbone.weights().positions
    assert positions is not None
    assert torch.equal(positions, encoder["vision_encoder.pos_embed"][0])


@pytest.mark.parametrize("cells", [(4, 4), (3, 5)])
def test_every_layer_of_vjepa(cells: tuple[int, int], tmp_path: Path, loader: Loader) -> None:
    """Also at sizes that are not the training's, which the class of transformers takes for the training's."""
    model = transformers.VJEPA2Model(transformers.VJEPA2Config(**VJEPA))
    tensors = stored(model, tmp_path, "encoder.")
    spec = infer(str(tmp_path), None, None)
    assert (spec.family, spec.prefix_tokens, spec.has_cls, spec.has_final) == ("V-JEPA", 0, False, True)
    assert (spec.input_size, spec.mlp_width) == (64, 256)
    images = pixels(2, cells[0] * 16, cells[1] * 16)
    backbone = loader(spec)
    agree(backbone, today_hub.vjepa(tensors, normalised(spec, images), 4), images)
    filters = backbone.weights().filters
    assert filters is not None
    weight = tensors["encoder.embeddings.patch_embeddings.proj.weight"]
    torch.testing.assert_close(filters, weight.sum(2))


@pytest.mark.parametrize("cells", [(4, 4), (3, 5)])
def test_every_layer_of_pixio(cells: tuple[int, int], tmp_path: Path, loader: Loader) -> None:
    """The first of eight class tokens is the one that is read; none of them is a patch."""
    shape = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 64}
    tensors = stored(transformers.PixioModel(transformers.PixioConfig(**shape)), tmp_path, "")
    spec = infer(str(tmp_path), None, None)
    assert (spec.family, spec.prefix_tokens, spec.has_cls, spec.has_final) == ("Pixio", 8, True, True)
    images = pixels(2, cells[0] * 16, cells[1] * 16)
    assert len(spec.layers) == 5
    agree(loader(spec), today_hub.pixio(tensors, normalised(spec, images), 4), images)


HIERA_HEADS = [1, 2, 2, 4]
HIERA: dict[str, Any] = {
    "embed_dim": 8,
    "depths": [2, 2, 2, 1],
    "num_heads": HIERA_HEADS,
    "image_size": [64, 64],
}
HIERA_STAGES = (Stage(2, 8, 4), Stage(2, 16, 8), Stage(2, 32, 16), Stage(1, 64, 32))
LOCAL = 5
"""Blocks up to the one that pools what the second stage gives attend inside units."""


def hiera(folder: Path, name: str = "HieraModel", **options: Any) -> tuple[BackboneSpec, Tensors]:
    """A small network of a class of transformers on disk: what is inferred of it, and its tensors."""
    model_class = getattr(transformers, name)
    tensors = stored(model_class(transformers.HieraConfig(**(HIERA | options))), folder, "")
    return infer(str(folder), None, None), tensors


@pytest.mark.parametrize("name", ["HieraModel", "HieraForImageClassification"])
@pytest.mark.parametrize("size", [(64, 64), (96, 160)])
def test_every_layer_of_hiera(name: str, size: tuple[int, int], tmp_path: Path, loader: Loader) -> None:
    """Against an implementation that never leaves the order of rows and columns."""
    spec, tensors = hiera(tmp_path, name)
    assert (spec.family, spec.stages, spec.heads) == ("Hiera", HIERA_STAGES, 4)
    assert (spec.prefix_tokens, spec.has_cls, spec.has_final, spec.input_size) == (0, False, False, 64)
    images = pixels(2, *size)
    assert len(spec.layers) == 8
    agree(loader(spec), today_hub.hiera(tensors, normalised(spec, images), HIERA_HEADS), images)


@pytest.mark.parametrize("pixel", [(0, 0), (31, 32), (37, 70), (63, 95)])
def test_a_cell_sees_the_pixels_at_its_place(pixel: tuple[int, int], tmp_path: Path, loader: Loader) -> None:
    """One pixel changes the cells whose filters reach it, then all cells of their units, and no others."""
    spec, _ = hiera(tmp_path)
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
    spec, _ = hiera(tmp_path)
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


def test_weights_of_hiera(tmp_path: Path, loader: Loader) -> None:
    spec, tensors = hiera(tmp_path)
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
    spec, tensors = hiera(tmp_path)
    spec = replace(spec, interpolation=rule)  # type: ignore[arg-type]
    images = pixels(1, 64, 96)
    backbone = loader(spec)
    entered = layers(backbone, images)[0]
    table = backbone._network.body.embeddings.position_embeddings  # type: ignore[attr-defined]
    table.zero_()
    fitted = fitted_positions(tensors["embeddings.position_embeddings"], (16, 24), spec.interpolation)
    torch.testing.assert_close(entered - layers(backbone, images)[0], fitted, rtol=1e-4, atol=1e-4)


def refusal(backbone: Backbone, height: int, layer: Layer) -> str:
    with pytest.raises(InputError) as caught:
        backbone.visit(pixels(1, height, 64), lambda _: None, (layer,))
    return str(caught.value)


def test_what_hiera_refuses(tmp_path: Path, loader: Loader) -> None:
    """Attention is inside units, or pooled, so that there is no table of all cells by all cells."""
    backbone = loader(hiera(tmp_path)[0])
    assert "sides are multiples of 32 px, not 64 x 48" in refusal(backbone, 48, Layer(1))
    assert "whose attention probabilities cannot be read" in refusal(backbone, 64, Layer(1, "probabilities"))
    assert refusal(backbone, 64, Layer(1, "norm1")).endswith("its taps are input and block.")


def test_what_enters_a_block_that_pools(tmp_path: Path, loader: Loader) -> None:
    """It is what the stage before gave, in the places of that stage."""
    spec, _ = hiera(tmp_path)
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
    transformers.HieraConfig(**(HIERA | options)).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(InputError, match=words):
        infer(str(tmp_path), None, None)

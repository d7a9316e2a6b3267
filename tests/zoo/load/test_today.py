"""Families of today: every layer against plain torch, and what their authors' configurations say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from layerboard.zoo.entries.family import NetworkSize
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.config import RADIO_SIZES, read_network
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Dtype, Stage
from tests.zoo import today_hub
from tests.zoo.conftest import Loader, Small
from tests.zoo.layouts import Tensors, fill
from tests.zoo.load.test_convert import agree
from tests.zoo.published import publish
from tests.zoo.reduced import Published, normalised, pixels

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

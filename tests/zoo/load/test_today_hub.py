"""SAM's image encoder, V-JEPA 2 on images, Pixio, from repositories: every layer against plain torch."""

from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from layerboard.zoo.load.infer import infer
from tests.zoo import today_hub
from tests.zoo.conftest import Loader
from tests.zoo.layouts import Tensors, fill
from tests.zoo.load.test_convert import agree
from tests.zoo.reduced import normalised, pixels

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

"""Networks of transformers as the repositories of entries hold them: class, configuration, names."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import PreTrainedConfig, PreTrainedModel

from layerboard.zoo.load.config import model_class, read_config
from layerboard.zoo.load.hub import quiet
from layerboard.zoo.load.rotary_vit import (
    CapiModel,
    CapiViTConfig,
    PerceptionEncoderConfig,
    PerceptionEncoderModel,
)
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.spec.origin import ORIGINAL
from tests.zoo.layouts import fill
from tests.zoo.today import SCALED

Built = tuple[type[PreTrainedModel], PreTrainedConfig]

_TEXT = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 16,
}
NATIVE_SIDES = {"DINOv2": 518, "TIPS": 448}
"""Sides in pixels of the training images, of families that are evaluated at others."""

LEFT_OVER = {
    "clip-b16": {"vision_model.embeddings.position_ids": torch.arange(4)[None]},
    "beit-b16": {"beit.encoder.relative_position_bias.relative_position_index": torch.zeros(2, 2).long()},
}
"""Buffers in repositories that transformers 4 wrote, which no network has today."""

MINIMAL_WIDTH = 192
"""Channels of the narrowest plain Vision Transformer of the registry; what is narrower is a reduced one."""

_MLP = {"siglip-so400m14": 4304, "siglip2-so400m14": 4304, "aimv2-l14": 2816, "aimv2-h14": 4096}
_MLP |= {"tipsv2-so14": 4304, "pe-core-g14": 8960, "pe-lang-g14": 8960, "pe-spatial-g14": 8960}
_MLP |= {"vjepa2-g16": 6144, "vjepa2-g16-384": 6144}
_MLP |= {"ijepa-g16-22k": 6144, "dinov3-7b16": 8192}


def native_side(spec: BackboneSpec) -> int:
    """Side in pixels of the images that an entry's network was trained on."""
    if spec.family == "PE":
        return int(spec.original.removesuffix(".pt").rpartition("-")[2])
    if spec.family == "Franca" and not spec.name.endswith("-224") and spec.heads != 24:
        return 518
    return NATIVE_SIDES.get(spec.family, spec.input_size)


def _shape(spec: BackboneSpec) -> dict[str, Any]:
    """Sizes of a plain Vision Transformer; reduced ones have an MLP of the same proportion, more or less."""
    full = _MLP.get(spec.name, 4 * spec.width)
    return {
        "hidden_size": spec.width,
        "num_hidden_layers": spec.depth,
        "num_attention_heads": spec.heads,
        "intermediate_size": full if spec.width >= MINIMAL_WIDTH else 4 * spec.width,
        "image_size": native_side(spec),
        "patch_size": spec.patch_size,
    }


def _clip(spec: BackboneSpec) -> Built:
    act = "gelu" if spec.name.startswith("openclip") else "quick_gelu"
    name = "MetaClip2" if spec.name.startswith("metaclip2") else "CLIP"
    return _towers(spec, name, hidden_act=act)


def _towers(spec: BackboneSpec, name: str, **vision: object) -> Built:
    config = getattr(transformers, f"{name}Config")
    shape = _shape(spec) | vision
    text = _TEXT | {"projection_size": 8} if name == "Siglip" else _TEXT
    return getattr(transformers, f"{name}Model"), config(vision_config=shape, text_config=text)


def _named(name: str, config: str | None = None, **options: object) -> Callable[[BackboneSpec], Built]:
    """A Vision Transformer of a class, with options of its configuration."""

    def build(spec: BackboneSpec) -> Built:
        model = getattr(transformers, name)
        config_class = getattr(transformers, config) if config else model.config_class
        return model, config_class(**(_shape(spec) | options))

    return build


def _fs(spec: BackboneSpec) -> Built:
    if spec.prefix_tokens == 2:
        return _named("DeiTForImageClassificationWithTeacher")(spec)
    return _named("ViTForImageClassification")(spec)


def _beit(spec: BackboneSpec) -> Built:
    if spec.has_final:
        shared = {"use_shared_relative_position_bias": True, "use_mask_token": True, "vocab_size": 16}
        return _named("BeitForMaskedImageModeling", **shared)(spec)
    per_block = {"use_relative_position_bias": True, "use_mean_pooling": True}
    return _named("BeitForImageClassification", **per_block)(spec)


def _dinov2(spec: BackboneSpec) -> Built:
    name = "Dinov2Model" if spec.prefix_tokens == 1 else "Dinov2WithRegistersModel"
    return _named(name, use_swiglu_ffn=spec.heads == 24)(spec)


def _dinov3(spec: BackboneSpec) -> Built:
    if spec.heads is None:
        return _convnet("DINOv3ConvNextModel")(spec)
    gated = spec.name.endswith("plus") or spec.heads == 32
    options: dict[str, object] = {"num_register_tokens": 4, "use_gated_mlp": gated}
    if gated:
        options["hidden_act"] = "silu"
    if spec.heads == 32:
        options |= {"query_bias": False, "value_bias": False}
    return _named("DINOv3ViTModel", **options)(spec)


def _radio(spec: BackboneSpec) -> Built:
    largest = 2048 if spec.width >= MINIMAL_WIDTH else 2 * spec.input_size
    tokens = 4 if "v3" in spec.name else 3
    registers = spec.prefix_tokens - tokens
    sizes: dict[str, Any] = {"max_img_size": largest, "num_cls_tokens": tokens, "num_registers": registers}
    return _named("RadioModel", **sizes)(spec)


def _tips(spec: BackboneSpec) -> Built:
    shape = _shape(spec)
    shape["mlp_ratio"] = shape.pop("intermediate_size") / spec.width
    shape["use_swiglu_ffn"] = spec.heads == 24
    text = _TEXT | {"hidden_size": spec.width, "num_attention_heads": spec.heads}
    return transformers.Tipsv2Model, transformers.Tipsv2Config(vision_config=shape, text_config=text)


def _sam(spec: BackboneSpec) -> Built:
    every = spec.depth // 4 if spec.depth > 3 else 2
    places = [index for index in range(spec.depth) if index % every == every - 1]
    shape = _shape(spec)
    shape["mlp_dim"] = shape.pop("intermediate_size")
    return transformers.SamVisionModel, transformers.SamVisionConfig(**shape, global_attn_indexes=places)


def _vjepa(spec: BackboneSpec) -> Built:
    shape = _shape(spec)
    sizes = {"crop_size": shape.pop("image_size"), "mlp_ratio": shape.pop("intermediate_size") / spec.width}
    predictor = {"pred_hidden_size": 8, "pred_num_attention_heads": 2, "pred_num_hidden_layers": 1}
    return transformers.VJEPA2Model, transformers.VJEPA2Config(**shape, **sizes, **predictor)


def _capi(spec: BackboneSpec) -> Built:
    return CapiModel, CapiViTConfig(**_shape(spec), num_register_tokens=spec.prefix_tokens)


def _perception(spec: BackboneSpec) -> Built:
    return PerceptionEncoderModel, PerceptionEncoderConfig(
        **_shape(spec),
        class_token=spec.has_cls,
        norm_after="weights" if spec.has_final else "none",
        layer_scale=spec.name in SCALED,
    )


def _convnet(name: str, **options: object) -> Callable[[BackboneSpec], Built]:
    def build(spec: BackboneSpec) -> Built:
        sizes: dict[str, Any] = {
            "hidden_sizes": [stage.width for stage in spec.stages],
            "depths": [stage.blocks for stage in spec.stages],
            "num_stages": len(spec.stages),
        }
        if spec.stem_width:
            sizes["embedding_size"] = spec.stem_width
        if name.startswith(("Bit", "DINOv3", "ResNet")):
            del sizes["num_stages"]
        if name.startswith("Bit"):
            sizes["num_groups"] = min(32, (spec.stem_width or 8) // 4)
        model = getattr(transformers, name)
        return model, model.config_class(**(sizes | options))

    return build


def _resnet(spec: BackboneSpec) -> Built:
    return _convnet("BitForImageClassification" if spec.has_final else "ResNetForImageClassification")(spec)


def _convnext(spec: BackboneSpec) -> Built:
    name = "ConvNextV2" if spec.name.startswith("convnextv2") else "ConvNext"
    return _convnet(f"{name}ForImageClassification")(spec)


def _tree(name: str, spec: BackboneSpec, **options: object) -> Built:
    """A transformer whose stages get wider."""
    model = getattr(transformers, name)
    return model, model.config_class(
        embed_dim=spec.stages[0].width,
        depths=[stage.blocks for stage in spec.stages],
        num_heads=[(spec.heads or 0) * stage.width // spec.width for stage in spec.stages],
        **options,
    )


def _swin(spec: BackboneSpec) -> Built:
    name = "Swinv2" if spec.name.startswith("swinv2") else "Swin"
    sizes = {"window_size": spec.input_size // spec.patch_size, "image_size": spec.input_size}
    return _tree(f"{name}ForImageClassification", spec, **sizes)


def _hiera(spec: BackboneSpec) -> Built:
    name = "HieraForImageClassification" if spec.name.endswith("-ft1k") else "HieraModel"
    return _tree(name, spec, image_size=[spec.input_size] * 2)


_BUILDERS: dict[str, Callable[[BackboneSpec], Built]] = {
    "FS": _fs,
    "CLIP": _clip,
    "DINO": _named("ViTModel"),
    "MAE": _named("ViTMAEForPreTraining", decoder_hidden_size=16, decoder_num_hidden_layers=1),
    "BEiT": _beit,
    "ResNet": _resnet,
    "DINOv2": _dinov2,
    "DINOv3": _dinov3,
    "SigLIP": partial(_towers, name="Siglip"),
    "AIMv2": _named("Aimv2VisionModel"),
    "data2vec": _named("Data2VecVisionModel", use_shared_relative_position_bias=True, use_mean_pooling=False),
    "I-JEPA": _named("IJepaModel"),
    "MSN": _named("ViTMSNModel"),
    "ConvNeXt": _convnext,
    "Swin": _swin,
    "RADIO": _radio,
    "TIPS": _tips,
    "SAM": _sam,
    "V-JEPA": _vjepa,
    "Hiera": _hiera,
    "Pixio": _named("PixioModel"),
}
_ORIGINALS: dict[str, Callable[[BackboneSpec], Built]] = {
    "Franca": _named("Dinov2Model", use_swiglu_ffn=True, mlp_ratio=4),
    "CAPI": _capi,
    "PE": _perception,
}


def of(spec: BackboneSpec) -> Built:
    """Class and configuration of what an entry's repository holds, or of its original in transformers."""
    if spec.origin == ORIGINAL:
        build = _ORIGINALS.get(spec.family, _named("ViTModel") if spec.heads else _resnet)
        model, config = build(spec)
    else:
        model, config = _BUILDERS[spec.family](spec)
    config.architectures = [model.__name__]
    return model, config


def write(spec: BackboneSpec, folder: Path, seed: int) -> None:
    """Write a seeded checkpoint of an entry as transformers saves one for the Hub."""
    for name, content in _files(replace(spec, repository=""), seed).items():
        (folder / name).write_bytes(content)


@cache
def _files(spec: BackboneSpec, seed: int) -> dict[str, bytes]:
    """What `write` writes, which many tests ask for."""
    with TemporaryDirectory() as folder:
        _write(spec, Path(folder), seed)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _write(spec: BackboneSpec, folder: Path, seed: int) -> None:
    with quiet():
        model_class, config = of(spec)
        model_class(config).save_pretrained(folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    if spec.family == "RADIO":  # Transformers adds a scale of 1 that the authors' networks have not.
        tensors = {name: tensor for name, tensor in tensors.items() if "layer_scale" not in name}
    drawn = {name: t for name, t in tensors.items() if "input_conditioner" not in name}
    floats = {name: tuple(t.shape) for name, t in drawn.items() if t.is_floating_point()}
    tensors |= fill(floats, seed) | LEFT_OVER.get(spec.name, {})
    if spec.family == "BEiT":  # whose repositories hold pickles
        path.unlink()
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(tensors, path, metadata={"format": "pt"})


def counted(spec: BackboneSpec) -> int:
    """Weights of the network of an entry as it is run, at its full size.

    Where all blocks are alike, those of one block more are found once: to build 40 takes seconds.
    """
    if len(spec.stages) > 1 or spec.family == "SAM":  # whose windows differ from block to block
        return _counted(spec)
    (stage,) = spec.stages
    one, two = (_counted(replace(spec, stages=(replace(stage, blocks=blocks),))) for blocks in (1, 2))
    return one + (stage.blocks - 1) * (two - one)


def _counted(spec: BackboneSpec) -> int:
    with quiet():
        return _weights(of(spec)[1].to_json_string(use_diff=False), spec.has_final)


@cache
def _weights(described: str, has_final: bool) -> int:
    """Of a configuration, which many entries share; a final norm counts where it is shown."""
    architecture, config = read_config(json.loads(described), Path("config.json"))
    network = model_class(architecture)
    options = {"add_pooling_layer": False} if "add_pooling_layer" in signature(network).parameters else {}
    with torch.device("meta"):
        model = network(config, **options)
    parts = [model.get_submodule(architecture.body)]
    if has_final:
        parts.append(model.get_submodule(architecture.final_norm or ""))
    return sum({id(weight): weight.numel() for part in parts for weight in part.parameters()}.values())

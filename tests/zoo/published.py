"""Random checkpoints in files as authors publish them, one for every layout that is converted."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import NO_FILE, BackboneSpec, Stage
from layerboard.zoo.spec.origin import ORIGINAL
from tests.zoo import layouts, originals, today
from tests.zoo.layouts import Shapes, Tensors

SIDE = 4
"""Patches a side of the reduced training images."""

STEM = 8
EPSILON = 1e-6


@dataclass(frozen=True)
class Published:
    """An entry, of which a file or directory holds a network, and its tensors under the original names.

    There are no tensors where tests know no original: of what only transformers' own format has.
    """

    spec: BackboneSpec
    tensors: Tensors

    def reference(self, images: Tensor) -> list[Tensor]:
        """Every layer by the original architecture, for normalised images."""
        heads = self.spec.heads or 0
        if self.spec.heads is None:
            return originals.resnet(self.tensors, images)
        if self.spec.family == "PE":
            return today.pe(self.tensors, images, heads)
        if self.spec.family == "CAPI":
            return today.capi(self.tensors, images, heads)
        if "class_embedding" in self.tensors:
            return originals.clip(self.tensors, images, heads)
        if "blocks.0.attn.q_bias" in self.tensors:
            return originals.beit(self.tensors, images, heads, EPSILON)
        return originals.vit(self.tensors, images, heads, EPSILON)


def at_size(spec: BackboneSpec, side: int) -> BackboneSpec:
    """The entry as one that was trained on, and is evaluated at, images of another size."""
    return replace(spec, input_size=side, trained_size=spec.trained_size and side)


def halves(spec: BackboneSpec) -> bool:
    """Whether its MLP is gated as DINOv2's is, with two thirds of the usual width."""
    return spec.gated_mlp and spec.family in ("DINOv2", "Franca", "TIPS")


@dataclass(frozen=True)
class Layout:
    """What authors publish: shapes of the backbone's tensors, and what the file holds around them."""

    entry: str
    file: str
    shapes: Callable[[BackboneSpec], Shapes]
    content: Callable[[Tensors], object] = dict
    changes: dict[str, object] = field(default_factory=dict)


def publish(name: str, folder: Path, *, full: bool = False) -> Published:
    """Write the file of a layout, with a reduced network or one of full size, and give its entry."""
    layout = LAYOUTS[name]
    (spec,) = find([layout.entry])
    spec = replace(spec, file=NO_FILE, **layout.changes)  # type: ignore[arg-type]
    spec = spec if full else _reduced(spec)
    tensors = layouts.fill(layout.shapes(spec))
    if spec.family == "CLIP":
        tensors = {key: tensor.half().float() for key, tensor in tensors.items()}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / layout.file
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(layout.content(tensors), path)
    return Published(replace(spec, repository=str(path), origin=ORIGINAL), tensors)


def _reduced(spec: BackboneSpec) -> BackboneSpec:
    if spec.heads is None:
        stages = tuple(Stage(min(s.blocks, 2), s.width // 16, s.stride) for s in spec.stages)
        return replace(spec, stages=stages, stem_width=STEM, input_size=64, parameters=None)
    patch, channels = spec.patch_size, 8 if spec.family in today.ROTARY else 4
    stages = (Stage(3, channels * spec.heads, patch),)
    inner = today.gated(stages[0].width) if halves(spec) else None
    return at_size(replace(spec, stages=stages, mlp_width=inner, parameters=None), SIDE * patch)


def _vit(spec: BackboneSpec) -> Shapes:
    side = spec.input_size // spec.patch_size
    return layouts.vit_shapes(spec.depth, spec.width, spec.patch_size, side, classes=0)


def _vit_with_head(spec: BackboneSpec) -> Shapes:
    return _vit(spec) | {"head.weight": (5, spec.width), "head.bias": (5,)}


def _distilled(spec: BackboneSpec) -> Shapes:
    shapes = _vit_with_head(spec)
    tokens = 2 + (spec.input_size // spec.patch_size) ** 2
    more: Shapes = {"dist_token": (1, 1, spec.width), "pos_embed": (1, tokens, spec.width)}
    return shapes | more | {"head_dist.weight": (5, spec.width), "head_dist.bias": (5,)}


def _dinov2(spec: BackboneSpec) -> Shapes:
    shapes = _vit(spec) | {"mask_token": (1, spec.width)}
    for index in range(spec.depth):
        shapes |= {f"blocks.{index}.ls{half}.gamma": (spec.width,) for half in (1, 2)}
    return shapes


def _registers(spec: BackboneSpec) -> Shapes:
    return _dinov2(spec) | {"register_tokens": (1, spec.prefix_tokens - 1, spec.width)}


def _beit(spec: BackboneSpec) -> Shapes:
    side = spec.input_size // spec.patch_size
    return layouts.beit_shapes(spec.depth, spec.width, spec.heads or 0, spec.patch_size, side)


def _fine_tuned_beit(spec: BackboneSpec) -> Shapes:
    shapes = _beit(spec)
    table = shapes.pop("rel_pos_bias.relative_position_bias_table")
    for kind in ("weight", "bias"):
        shapes[f"fc_norm.{kind}"] = shapes.pop(f"norm.{kind}")
        del shapes[f"lm_head.{kind}"]
    for index in range(spec.depth):
        shapes[f"blocks.{index}.attn.relative_position_bias_table"] = table
    return shapes | {"head.weight": (5, spec.width), "head.bias": (5,)}


def _clip(spec: BackboneSpec) -> Shapes:
    side = spec.input_size // spec.patch_size
    return layouts.clip_shapes(spec.depth, spec.width, spec.patch_size, side)


def _resnet(spec: BackboneSpec, *, basic: bool = False) -> Shapes:
    stages = [(stage.blocks, stage.width) for stage in spec.stages]
    return layouts.resnet_shapes(spec.stem_width or 0, stages, basic=basic)


def _basic_resnet(spec: BackboneSpec) -> Shapes:
    return _resnet(spec, basic=True)


def _headless_resnet(spec: BackboneSpec) -> Shapes:
    return {name: shape for name, shape in _resnet(spec).items() if not name.startswith("fc.")}


def _under_model(tensors: Tensors) -> object:
    return {"model": tensors}


def _mae(tensors: Tensors) -> object:
    decoder: Shapes = {
        "mask_token": (1, 1, 8),
        "decoder_embed.weight": (8, 8),
        "decoder_pos_embed": (1, 2, 8),
    }
    decoder |= {"decoder_blocks.0.norm1.weight": (8,), "decoder_norm.weight": (8,), "decoder_pred.bias": (8,)}
    return {"model": tensors | layouts.fill(decoder)}


def _beit_content(tensors: Tensors) -> object:
    index = {"rel_pos_bias.relative_position_index": torch.zeros(2, 2, dtype=torch.long)}
    return {"model": tensors | index}


def _student_and_teacher(tensors: Tensors) -> object:
    """DINO's checkpoint of a training: two networks with heads, the optimizer, and the options."""
    student = {f"module.backbone.{name}": -tensor for name, tensor in tensors.items()}
    teacher = {f"backbone.{name}": tensor for name, tensor in tensors.items()}
    head = torch.ones(2, 2)
    return {
        "student": student | {"module.head.mlp.0.weight": head},
        "teacher": teacher | {"head.mlp.0.weight": head},
        "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]},
        "epoch": 300,
        "args": Namespace(arch="vit_small", patch_size=16),
        "dino_loss": {"center": head},
    }


def _moco(tensors: Tensors) -> object:
    query = {f"module.base_encoder.{name}": tensor for name, tensor in tensors.items()}
    head = {
        "module.base_encoder.head.0.weight": torch.ones(2, 2),
        "module.predictor.0.weight": torch.ones(2, 2),
    }
    momentum = {f"module.momentum_encoder.{name}": -tensor for name, tensor in tensors.items()}
    return {"epoch": 300, "arch": "vit_small", "state_dict": query | head | momentum, "scaler": {}}


def _moco_resnet(tensors: Tensors) -> object:
    more = {"fc.0.weight": torch.ones(2, 2), "bn1.num_batches_tracked": torch.tensor(3)}
    return {
        "state_dict": {f"module.base_encoder.{name}": tensor for name, tensor in (tensors | more).items()}
    }


def _under_state_dict(tensors: Tensors) -> object:
    return {"state_dict": tensors}


def _openai(tensors: Tensors) -> object:
    """OpenAI's state dict: half precision, with the text tower and three numbers beside the weights."""
    visual = {f"visual.{name}": tensor.half() for name, tensor in tensors.items()}
    text: Shapes = {
        "visual.proj": (8, 8),
        "token_embedding.weight": (8, 8),
        "positional_embedding": (4, 8),
        "transformer.resblocks.0.attn.in_proj_weight": (24, 8),
        "ln_final.weight": (8,),
        "text_projection": (8, 8),
        "logit_scale": (),
    }
    return visual | layouts.fill(text) | {"input_resolution": torch.tensor(224)}


LAYOUTS = {
    "timm": Layout("fs-b16", "model.safetensors", _vit_with_head),
    "dino": Layout("dino-b16", "dino_vitbase16_pretrain.pth", _vit),
    "dino-training": Layout("dino-s16", "checkpoint.pth", _vit, _student_and_teacher),
    "moco": Layout("moco-s16", "vit-s-300ep.pth.tar", _vit, _moco),
    "moco-b16": Layout("moco-b16", "vit-b-300ep.pth.tar", _vit, _moco),
    "mae": Layout("mae-b16", "mae_pretrain_vit_base.pth", _vit, _mae),
    "deit": Layout("fs-b16", "deit.pth", _vit_with_head, _under_model),
    "deit-distilled": Layout("deit-b16-distilled", "deit.pth", _distilled, _under_model),
    "beit": Layout("beit-b16", "beit_base_patch16_224_pt22k.pth", _beit, _beit_content),
    "beit-tuned": Layout("beit-b16", "beit.pth", _fine_tuned_beit, _beit_content, {"has_final": False}),
    "dinov2": Layout("dinov2-b14", "dinov2_vitb14_pretrain.pth", _dinov2),
    "dinov2-registers": Layout("dinov2-b14-reg", "dinov2_vitb14_reg4_pretrain.pth", _registers),
    "dinov2-gated": Layout("dinov2-g14", "dinov2_vitg14_pretrain.pth", today.franca_shapes),
    "franca": Layout(
        "franca-b14-in21k", "franca_vitb14_In21K.pth", today.franca_shapes, today.franca_content
    ),
    "capi": Layout("capi-l14-lvd142m", "capi_vitl14_lvd.pth", today.capi_shapes, today.capi_content),
    "pe-core": Layout("pe-core-b16", "PE-Core-B16-224.pt", today.pe_shapes, today.pe_content),
    "pe-spatial": Layout("pe-spatial-s16", "PE-Spatial-S16-512.pt", today.pe_shapes, today.pe_content),
    "pe-scaled": Layout("pe-spatial-g14", "PE-Spatial-G14-448.pt", today.pe_shapes, today.pe_content),
    "clip": Layout("clip-b16", "ViT-B-16.pth", _clip, _openai),
    "resnet": Layout("resnet50", "dino_resnet50_pretrain.pth", _resnet),
    "resnet-moco": Layout("resnet50", "r-50-1000ep.pth.tar", _resnet, _moco_resnet),
    "resnet-basic": Layout("resnet50", "resnet18.pth", _basic_resnet),
}

_ENTRIES: dict[str, tuple[Callable[[BackboneSpec], Shapes], Callable[[Tensors], object]]] = {
    "FS": (_vit_with_head, dict),
    "DINO": (_vit, dict),
    "iBOT": (_vit, _under_state_dict),
    "MoCo": (_vit, _moco),
    "Franca": (today.franca_shapes, today.franca_content),
    "CAPI": (today.capi_shapes, today.capi_content),
    "PE": (today.pe_shapes, today.pe_content),
}
"""Of families whose entries are files of their authors: the tensors, and what a file holds around them."""


def of_entry(spec: BackboneSpec, seed: int) -> tuple[Tensors, object]:
    """Tensors of an entry that is a file of its authors, and the content of that file."""
    shapes, content = _ENTRIES[spec.family] if spec.heads else (_headless_resnet, dict)
    if spec.heads is None and spec.family == "MoCo":
        content = _moco_resnet
    tensors = layouts.fill(shapes(spec), seed)
    return tensors, content(tensors)

"""Where the parts of each supported architecture of transformers sit."""

from dataclasses import dataclass
from typing import Any

from transformers import (
    Aimv2VisionModel,
    BeitForMaskedImageModeling,
    BeitModel,
    BitModel,
    CLIPVisionModel,
    ConvNextModel,
    ConvNextV2Model,
    Data2VecVisionModel,
    DeiTModel,
    Dinov2Model,
    Dinov2WithRegistersModel,
    DINOv3ConvNextModel,
    DINOv3ViTModel,
    FocalNetModel,
    IJepaModel,
    MetaClip2VisionModel,
    MLCDVisionModel,
    PreTrainedModel,
    RadioModel,
    ResNetModel,
    SamVisionModel,
    SiglipVisionModel,
    SwinModel,
    Swinv2Model,
    Tipsv2VisionModel,
    ViTModel,
    ViTMSNModel,
)

from zoo.load.rotary_vit import CapiModel, PerceptionEncoderModel
from zoo.normalisation import CLIP, HALF, IMAGENET, UNIT, Normalisation

_HEADS = r"^(classifier|head|lm_head|pooler|.*\.pooler|cls_classifier|distillation_classifier)\."
_OTHER_TOWER = r"^(text_model|text_projection|visual_projection|logit_scale|logit_bias)\b"
_UNUSED_STATE = (
    r"(^|\.)(position_ids|relative_position_index|relative_coords_table|mask_token|num_batches_tracked)$"
)
NEVER_NEEDED = (_HEADS, _UNUSED_STATE)
"""Patterns of keys that no feature depends on, whether a checkpoint has them or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How to build one model type of transformers, and where its parts are.

    Attributes:
        model_type: Its name in ``config.json``.
        model: Class that holds the weights.
        checkpoint_class: If given, only for checkpoints whose configuration names this class.
        body: Path of the part of ``model`` whose forward is run; the empty string for all of it.
        blocks: Path of the blocks below ``model``; ``*`` stands for each stage.
        final_norm: Path of the norm after the last block; None where there is none over all tokens.
        mean_pooled: Whether the final norm is absent from checkpoints that say ``use_mean_pooling``.
        prefix_tokens: Tokens before the patch tokens, without registers.
        has_cls: Whether the first of them is a class token.
        interpolates: Whether position embeddings are fitted to the image only when the forward is asked to.
        convolutional: Whether blocks give feature maps [batch channels height width].
        cells: Whether blocks give tokens in their places, [batch height width channels].
        hierarchical: Whether blocks give tokens whose grid and width change from stage to stage.
        pooling_option: Whether the class takes ``add_pooling_layer``.
        unused: Patterns of keys that a checkpoint may have beside `NEVER_NEEDED`.
        family: Family of an unknown checkpoint of this type.
        normalisation: What its images are normalised with where no preprocessor configuration says so.
    """

    model_type: str
    model: type[PreTrainedModel]
    checkpoint_class: str | None = None
    body: str = ""
    blocks: str
    final_norm: str | None
    mean_pooled: bool = False
    prefix_tokens: int = 1
    has_cls: bool = True
    interpolates: bool = False
    convolutional: bool = False
    cells: bool = False
    hierarchical: bool = False
    pooling_option: bool = False
    unused: tuple[str, ...] = ()
    family: str = "other"
    normalisation: Normalisation = IMAGENET


_CONV: dict[str, Any] = {
    "blocks": "encoder.stages.*.layers",
    "prefix_tokens": 0,
    "has_cls": False,
    "convolutional": True,
}
_HIERARCHY: dict[str, Any] = {
    "final_norm": "layernorm",
    "prefix_tokens": 0,
    "has_cls": False,
    "hierarchical": True,
    "pooling_option": True,
}
_CLIP: dict[str, Any] = {
    "blocks": "encoder.layers",
    "final_norm": "post_layernorm",
    "unused": (_OTHER_TOWER,),
    "normalisation": CLIP,
}
_POOLING_HEAD = r"^(vision_model\.)?head\."

ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        model_type="vit",
        model=ViTModel,
        blocks="layers",
        final_norm="layernorm",
        interpolates=True,
        pooling_option=True,
        normalisation=HALF,
    ),
    Architecture(
        model_type="deit",
        model=DeiTModel,
        blocks="layers",
        final_norm="layernorm",
        prefix_tokens=2,
        interpolates=True,
        pooling_option=True,
    ),
    Architecture(
        model_type="vit_mae",
        model=ViTModel,
        blocks="layers",
        final_norm="layernorm",
        interpolates=True,
        pooling_option=True,
        unused=(r"^decoder\.",),
        family="MAE",
    ),
    Architecture(
        model_type="clip_vision_model", model=CLIPVisionModel, interpolates=True, family="CLIP", **_CLIP
    ),
    Architecture(
        model_type="metaclip_2_vision_model", model=MetaClip2VisionModel, interpolates=True, **_CLIP
    ),
    Architecture(model_type="mlcd_vision_model", model=MLCDVisionModel, **_CLIP),
    Architecture(
        model_type="siglip_vision_model",
        model=SiglipVisionModel,
        blocks="encoder.layers",
        final_norm="post_layernorm",
        prefix_tokens=0,
        has_cls=False,
        interpolates=True,
        unused=(_POOLING_HEAD, _OTHER_TOWER),
        normalisation=HALF,
    ),
    Architecture(
        model_type="aimv2_vision_model",
        model=Aimv2VisionModel,
        blocks="encoder.layers",
        final_norm="rms_norm",
        prefix_tokens=0,
        has_cls=False,
        unused=(_POOLING_HEAD, _OTHER_TOWER),
        normalisation=CLIP,
    ),
    Architecture(
        model_type="beit",
        model=BeitForMaskedImageModeling,
        checkpoint_class="BeitForMaskedImageModeling",
        body="beit",
        blocks="beit.layers",
        final_norm="layernorm",
        family="BEiT",
        normalisation=HALF,
    ),
    Architecture(
        model_type="beit",
        model=BeitModel,
        blocks="layers",
        final_norm="layernorm",
        mean_pooled=True,
        pooling_option=True,
        unused=(r"^layernorm\.",),
        family="BEiT",
        normalisation=HALF,
    ),
    Architecture(
        model_type="data2vec-vision",
        model=Data2VecVisionModel,
        blocks="encoder.layer",
        final_norm="layernorm",
        mean_pooled=True,
        pooling_option=True,
        normalisation=HALF,
    ),
    Architecture(model_type="dinov2", model=Dinov2Model, blocks="encoder.layer", final_norm="layernorm"),
    Architecture(
        model_type="dinov2_with_registers",
        model=Dinov2WithRegistersModel,
        blocks="encoder.layer",
        final_norm="layernorm",
    ),
    Architecture(model_type="dinov3_vit", model=DINOv3ViTModel, blocks="model.layer", final_norm="norm"),
    Architecture(
        model_type="radio",
        model=RadioModel,
        blocks="encoder.layer",
        final_norm=None,
        unused=(r"(^|\.)summary_idxs$", r"^radio_model\.(adaptors|(inter_)?feature_normalizer)\."),
        family="RADIO",
        normalisation=UNIT,
    ),
    Architecture(
        model_type="tipsv2_vision_model",
        model=Tipsv2VisionModel,
        blocks="encoder.layer",
        final_norm="layernorm",
        unused=(r"^(text_encoder|text_model)\.", r"^temperature$"),
        family="TIPS",
        normalisation=UNIT,
    ),
    Architecture(
        model_type="sam_vision_model",
        model=SamVisionModel,
        body="vision_encoder",
        blocks="vision_encoder.layers",
        final_norm=None,
        prefix_tokens=0,
        has_cls=False,
        cells=True,
        unused=(r"^(prompt_encoder|mask_decoder|shared_image_embedding)\.",),
        family="SAM",
    ),
    Architecture(model_type="capi", model=CapiModel, blocks="layers", final_norm="norm", family="CAPI"),
    Architecture(
        model_type="perception_encoder",
        model=PerceptionEncoderModel,
        blocks="layers",
        final_norm="norm",
        family="PE",
        normalisation=HALF,
    ),
    Architecture(
        model_type="ijepa",
        model=IJepaModel,
        blocks="layers",
        final_norm="layernorm",
        prefix_tokens=0,
        has_cls=False,
        interpolates=True,
        pooling_option=True,
    ),
    Architecture(
        model_type="vit_msn", model=ViTMSNModel, blocks="layers", final_norm="layernorm", interpolates=True
    ),
    Architecture(
        model_type="swin", model=SwinModel, blocks="encoder.layers.*.blocks", interpolates=True, **_HIERARCHY
    ),
    Architecture(
        model_type="swinv2",
        model=Swinv2Model,
        blocks="encoder.layers.*.blocks",
        interpolates=True,
        **_HIERARCHY,
    ),
    Architecture(model_type="focalnet", model=FocalNetModel, blocks="encoder.stages.*.layers", **_HIERARCHY),
    Architecture(model_type="resnet", model=ResNetModel, final_norm=None, family="ResNet", **_CONV),
    Architecture(
        model_type="bit", model=BitModel, final_norm="norm", family="ResNet", normalisation=HALF, **_CONV
    ),
    Architecture(model_type="convnext", model=ConvNextModel, final_norm=None, **_CONV),
    Architecture(model_type="convnextv2", model=ConvNextV2Model, final_norm=None, **_CONV),
    Architecture(
        model_type="dinov3_convnext",
        model=DINOv3ConvNextModel,
        final_norm="layer_norm",
        **(_CONV | {"blocks": "model.stages.*.layers"}),
    ),
)

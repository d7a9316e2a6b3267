"""Where the parts of each supported architecture of transformers sit."""

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
    HieraModel,
    IJepaModel,
    MetaClip2VisionModel,
    MLCDVisionModel,
    PixioModel,
    RadioModel,
    ResNetModel,
    SamVisionModel,
    SiglipVisionModel,
    SwinModel,
    Swinv2Model,
    Tipsv2VisionModel,
    ViTModel,
    ViTMSNModel,
    VJEPA2Model,
)

from zoo.load.build import NEVER_NEEDED, Architecture
from zoo.load.rotary_vit import CapiModel, PerceptionEncoderModel
from zoo.normalisation import CLIP, HALF, UNIT

__all__ = ["ARCHITECTURES", "NEVER_NEEDED", "Architecture"]

_OTHER_TOWER = r"^(text_model|text_projection|visual_projection|logit_scale|logit_bias)\b"
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
    Architecture(
        model_type="vjepa2",
        model=VJEPA2Model,
        body="encoder",
        blocks="encoder.layer",
        final_norm="encoder.layernorm",
        prefix_tokens=0,
        has_cls=False,
        unused=(r"^predictor\.",),
        family="V-JEPA",
    ),
    Architecture(
        model_type="pixio",
        model=PixioModel,
        blocks="layers",
        final_norm="layernorm",
        family="Pixio",
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
    Architecture(
        model_type="hiera",
        model=HieraModel,
        blocks="encoder.stages.*.layers",
        interpolates=True,
        units=True,
        family="Hiera",
        **(_HIERARCHY | {"final_norm": None}),
    ),
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

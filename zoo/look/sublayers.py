"""Where the sublayers of a residual block sit, for each model type of transformers."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from zoo.spec import BackboneSpec, Layer


@dataclass(frozen=True, slots=True)
class Sublayers:
    """Names of a block's parts, as attributes of the block.

    Attributes:
        norm1: Norm before the attention.
        norm2: Norm before the MLP.
        attention: Module whose output, times ``attention_scale``, is added to the residual stream.
        mlp: Module whose output, times ``mlp_scale``, is added to the residual stream.
        probabilities: Module that gives the attention probabilities as its second output when it computes
            them one by one (eager); None where that must be chosen when the network is built.
        attention_scale: LayerScale that no module of its own applies; None where there is none.
        mlp_scale: The same of the MLP.
    """

    norm1: str
    norm2: str
    attention: str
    mlp: str
    probabilities: str | None
    attention_scale: str | None = None
    mlp_scale: str | None = None


_VIT = Sublayers("layernorm_before", "layernorm_after", "attention", "mlp", "attention")
_CLIP = Sublayers("layer_norm1", "layer_norm2", "self_attn", "mlp", "self_attn")
_BEIT = Sublayers(
    "layernorm_before", "layernorm_after", "attention", "mlp", "attention", "lambda_1", "lambda_2"
)
_DATA2VEC = Sublayers(
    "layernorm_before", "layernorm_after", "attention", "output", None, "lambda_1", "lambda_2"
)
_DINOV2 = Sublayers("norm1", "norm2", "layer_scale1", "layer_scale2", "attention")
_AIMV2 = Sublayers("rms_norm1", "rms_norm2", "attention", "ffn", "attention")

SUBLAYERS: dict[str, Sublayers] = {
    "vit": _VIT,
    "deit": _VIT,
    "vit_mae": _VIT,
    "vit_msn": _VIT,
    "ijepa": _VIT,
    "clip_vision_model": _CLIP,
    "metaclip_2_vision_model": _CLIP,
    "mlcd_vision_model": _CLIP,
    "siglip_vision_model": _CLIP,
    "beit": _BEIT,
    "data2vec-vision": _DATA2VEC,
    "dinov2": _DINOV2,
    "dinov2_with_registers": _DINOV2,
    "dinov3_vit": _DINOV2,
    "aimv2_vision_model": _AIMV2,
}
"""By model type; types that are not here have no such sublayers, or they are not known."""

_NORMS = ("norm1", "norm2")


def unknown_sublayer(spec: BackboneSpec, layer: Layer) -> str:
    """Why a sublayer cannot be shown where nobody knows the parts of the blocks, in a sentence."""
    return (
        f"{spec.name} has no layer {layer}: where the {layer.tap} of its blocks is, if they have one, is not "
        "known; its taps are block and final."
    )


def tap_module(
    sublayers: Sublayers, layer: Layer, block: nn.Module
) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """The module of a block whose output a tap reads, and what remains to be done to that output."""
    module = block.get_submodule(getattr(sublayers, layer.tap))
    if layer.tap in _NORMS:
        return module, _unchanged
    name = sublayers.attention_scale if layer.tap == "attention" else sublayers.mlp_scale
    scale = getattr(block, name) if name else None
    return module, _unchanged if scale is None else lambda output: output * scale


def _unchanged(output: Tensor) -> Tensor:
    return output

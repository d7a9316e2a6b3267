"""Where the sublayers of a residual block sit, for each model type of transformers."""

from dataclasses import dataclass, replace

from torch import nn

from zoo.look.layers import in_words
from zoo.spec import BackboneSpec, Layer, Tap


@dataclass(frozen=True, slots=True)
class Projections:
    """Names of the linear maps inside a block of a transformer, as paths from the block.

    Attributes:
        query: Module whose output is the queries of all heads side by side, [batch tokens heads*dim].
        key: The same of the keys.
        value: The same of the values.
        heads: Module that projects the outputs of all heads back to the width of the stream.
        hidden: Module that projects the inside of the MLP back; the first of these names that a block has.
    """

    query: str
    key: str
    value: str
    heads: str
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sublayers:
    """Names of the parts of a transformer's block, as paths from the block.

    Attributes:
        norm1: Norm before the attention.
        norm2: Norm before the MLP, which is given the stream between the two.
        attention: Module whose output, times ``attention_scale``, is added to the residual stream.
        mlp: Module whose output, times ``mlp_scale``, is added to the residual stream.
        attends: Module that attends, from its norm's output to what its heads give, projected.
        projections: Linear maps in it and in the MLP.
        gives_probabilities: Whether ``attends`` gives the attention probabilities as its second output when
            it computes them one by one (eager); otherwise that must be chosen when the network is built.
        rotary: Whether ``attends`` rotates queries and keys by the ``position_embeddings`` it is given.
        tokens_first: Whether the heads' outputs are [tokens batch heads*dim] where they are projected.
        attention_scale: LayerScale that no module of its own applies; None where there is none.
        mlp_scale: The same of the MLP.
    """

    norm1: str
    norm2: str
    attention: str
    mlp: str
    attends: str
    projections: Projections
    gives_probabilities: bool = True
    rotary: bool = False
    tokens_first: bool = False
    attention_scale: str | None = None
    mlp_scale: str | None = None


@dataclass(frozen=True, slots=True)
class Residual:
    """Names of the parts of a ConvNet's residual block, as attributes of the block.

    Attributes:
        skip: Module whose output goes past the convolutions; the block's input where it has none.
        branch: Module whose output is added to it.
        overwrites: Whether the sum is written into the branch, after ``skip`` was computed.
    """

    skip: str | None
    branch: str
    overwrites: bool = False


def _projections(attention: str, out: str, *hidden: str) -> Projections:
    return Projections(
        f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj", f"{attention}.{out}", hidden
    )


_VIT = Sublayers(
    "layernorm_before",
    "layernorm_after",
    "attention",
    "mlp",
    "attention",
    _projections("attention", "o_proj", "mlp.fc2"),
)
_CLIP = Sublayers(
    "layer_norm1",
    "layer_norm2",
    "self_attn",
    "mlp",
    "self_attn",
    _projections("self_attn", "out_proj", "mlp.fc2"),
)
_BEIT = replace(_VIT, attention_scale="lambda_1", mlp_scale="lambda_2")
_DATA2VEC = replace(
    _BEIT,
    mlp="output",
    projections=Projections(
        "attention.attention.query",
        "attention.attention.key",
        "attention.attention.value",
        "attention.output.dense",
        ("output.dense",),
    ),
    gives_probabilities=False,
)
_DINOV2 = Sublayers(
    "norm1",
    "norm2",
    "layer_scale1",
    "layer_scale2",
    "attention",
    _projections("attention", "o_proj", "mlp.fc2", "mlp.down_proj"),
)
_AIMV2 = Sublayers(
    "rms_norm1",
    "rms_norm2",
    "attention",
    "ffn",
    "attention",
    _projections("attention", "out_proj", "ffn.down_proj"),
)

SUBLAYERS: dict[str, Sublayers] = {
    "vit": _VIT,
    "deit": _VIT,
    "vit_mae": _VIT,
    "vit_msn": _VIT,
    "ijepa": _VIT,
    "pixio": _VIT,
    "clip_vision_model": _CLIP,
    "metaclip_2_vision_model": _CLIP,
    "mlcd_vision_model": replace(_CLIP, rotary=True, tokens_first=True),
    "siglip_vision_model": _CLIP,
    "beit": _BEIT,
    "data2vec-vision": _DATA2VEC,
    "dinov2": _DINOV2,
    "dinov2_with_registers": _DINOV2,
    "dinov3_vit": replace(_DINOV2, rotary=True),
    "radio": _DINOV2,
    "tipsv2_vision_model": _DINOV2,
    "capi": replace(_DINOV2, rotary=True),
    "perception_encoder": replace(_DINOV2, rotary=True),
    "aimv2_vision_model": _AIMV2,
}
"""By model type; types that are not here have no such sublayers, or they are not known."""

_CONVNEXT = Residual(None, "drop_path")

RESIDUALS: dict[str, Residual] = {
    "resnet": Residual("shortcut", "layer", overwrites=True),
    "bit": Residual("downsample", "drop_path"),
    "convnext": _CONVNEXT,
    "convnextv2": _CONVNEXT,
    "dinov3_convnext": _CONVNEXT,
}
"""By model type; types that are not here have no such parts, or they are not known."""

Parts = Sublayers | Residual | None
"""What is known of the inside of a network's blocks."""


def knows(parts: Parts, tap: Tap) -> bool:
    """Whether it is known where a tap inside a block is read; what enters a block is known of all."""
    if tap in ("skip", "branch"):
        return isinstance(parts, Residual)
    return tap == "input" or isinstance(parts, Sublayers)


def unknown_sublayer(spec: BackboneSpec, layer: Layer) -> str:
    """Why a sublayer cannot be shown where nobody knows the parts of the blocks, in a sentence."""
    return (
        f"{spec.name} has no layer {layer}: where the {layer.tap} of its blocks is, if they have one, is not "
        f"known; its taps are {in_words(('input', 'block', 'final')[: 3 if spec.has_final else 2])}."
    )


def submodule(block: nn.Module, names: tuple[str, ...]) -> nn.Module:
    """The first of these modules that a block has."""
    there = dict(block.named_modules())
    return block.get_submodule(next(name for name in names if name in there))

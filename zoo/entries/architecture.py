"""One architecture of transformers: its class, where its parts are, and the names in the authors' files.

Pure data, defined in `zoo.entries` beside the backbones that use it; paths are dotted, as in torch. Imports
nothing heavy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from layerboard.zoo.spec import IMAGENET, Normalisation

# Pattern of the tensors of heads, which no feature depends on, outside the blocks of any network.
HEADS = (
    r"^((\w+_)?heads?|head_dist|fc\d*|(\w+_)?classifier|(\w+_)?projector|predictor|prototypes|linear|pre_logits"
    r"|last_layer|logits)\."
)

# Axes of the activations between blocks: tokens [batch tokens dim], tokens-first [tokens batch dim],
# maps [batch dim height width], cells [batch height width dim].
Layout = Literal["tokens", "tokens-first", "maps", "cells"]

# Includes networks of transformers: units are tokens [batch tokens dim] in the order of mask units.
StreamLayout = Layout | Literal["units"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sublayers:
    """Paths of the parts of a transformer block, from the block; by default those of a ``ViTLayer``."""

    norm1: str = "layernorm_before"  # before the attention
    norm2: str = "layernorm_after"  # before the MLP; its input is the stream between attention and MLP
    # Their outputs, times attention_scale and mlp_scale, are added to the residual stream; "" if no module
    # gives what is added, which is then the difference of the stream.
    attention: str = "attention"
    mlp: str = "mlp"
    attends: str = "attention"  # from the output of its norm to the projected output of its heads
    query: str = "attention.q_proj"  # gives the queries of all heads side by side, [batch tokens heads*dim]
    key: str = "attention.k_proj"
    value: str = "attention.v_proj"
    heads: str = "attention.o_proj"  # projects the outputs of all heads back to the width of the stream
    # Projects the hidden layer of the MLP back: the first of these that a block has.
    hidden: tuple[str, ...] = ("mlp.fc2",)
    # Whether attends returns the attention probabilities as its second output when it computes them (eager);
    # otherwise eager must be chosen when the network is built.
    gives_probabilities: bool = True
    rotary: bool = False  # whether attends rotates queries and keys by its argument position_embeddings
    tokens_first: bool = False  # whether heads are [tokens batch heads*dim] at their projection
    attention_scale: str | None = None  # LayerScale without a module of its own; None for none
    mlp_scale: str | None = None


@dataclass(frozen=True, slots=True)
class Residual:
    """Names of the parts of a ConvNet's residual block, as attributes of the block."""

    skip: str | None  # its output bypasses the convolutions; for None, the block's input does
    branch: str  # its output is added to that
    overwrites: bool = False  # whether the sum is written into the branch, after skip was computed


Parts = Sublayers | Residual | None  # the known parts of a network's blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How to build one model type of transformers, and where its parts are."""

    model_type: str  # in config.json
    # Class that holds the weights, of transformers or zoo.load.rotary_vit; "" for that of ``AutoModel``.
    model: str = ""
    is_named: bool = False  # whether it is only for checkpoints whose configuration names that class
    tower_of: str = ""  # model type of image-text models that have it as vision tower
    pooling_key: str = ""  # key of the configuration that adds attention pooling, which is not used
    body: str = ""  # path of the part of the model whose forward is run; "" for all of it
    blocks: str  # path of the blocks below the model; * stands for each stage
    final_norm: str | None  # path of the norm after the last block; None if there is no norm over all tokens
    prefix_tokens: int = 1  # tokens before the patch tokens, without registers; the first is a class token
    interpolates: bool = True  # whether its forward must be told to interpolate positions
    layout: StreamLayout = "tokens"
    unused: tuple[str, ...] = ()  # patterns of further keys that no feature depends on
    parts: Parts = None
    family: str = "other"  # default for an unknown checkpoint of this type
    normalisation: Normalisation = IMAGENET  # default without a preprocessor configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsNames:
    """Names of tensors in the authors' files, and the names in transformers that replace them."""

    layout: str  # how errors refer to the authors' names
    fixed: Mapping[str, str]  # outside the blocks, old to new
    block: Mapping[str, str | tuple[str, ...]]  # inside a block; several new ones get equal parts of the rows
    old_block: str  # before the old names of block {}
    new_block: str  # before the new names of block {}
    optional: tuple[str, ...] = ()  # old names that only some networks have, in all blocks or in none
    unused: tuple[str, ...]  # patterns of tensors that no feature depends on
    patches: str  # old name of the patch embedding's weight
    hidden: str  # old name, in a block, of the weight whose rows are the MLP's hidden channels


def affine(names: Mapping[str, str]) -> dict[str, str]:
    """Names of the weight and bias of each module in a table of modules."""
    return {f"{old}.{kind}": f"{new}.{kind}" for old, new in names.items() for kind in ("weight", "bias")}


def split_affine(old: str, *new: str) -> dict[str, tuple[str, ...]]:
    """Names of the weight and bias of a module whose rows are split among several."""
    return {f"{old}.{kind}": tuple(f"{part}.{kind}" for part in new) for kind in ("weight", "bias")}

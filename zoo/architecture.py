"""What is said of one architecture of transformers: its class, where its parts are, its authors' names.

Pure data, stated in `zoo.entries` beside the backbones that have it; paths are dotted, as torch's are.
Imports nothing heavy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from zoo.spec import IMAGENET, Normalisation, Tap

Layout = Literal["tokens", "tokens-first", "maps", "cells"]
"""Axes of what blocks pass on: ``tokens`` [batch tokens dim], ``tokens-first`` [tokens batch dim], ``maps``
[batch dim height width], ``cells`` [batch height width dim]."""

StreamLayout = Layout | Literal["units"]
"""Those of networks of transformers: ``units`` are tokens [batch tokens dim] in the order of mask units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sublayers:
    """Paths of the parts of a transformer's block, from the block.

    Attributes:
        norm1: Norm before the attention.
        norm2: Norm before the MLP, which is given the stream between the two.
        attention: Module whose output, times ``attention_scale``, is added to the residual stream.
        mlp: Module whose output, times ``mlp_scale``, is added to the residual stream.
        attends: Module that attends, from its norm's output to what its heads give, projected.
        query: Module whose output is the queries of all heads side by side, [batch tokens heads*dim].
        key: The same of the keys.
        value: The same of the values.
        heads: Module that projects the outputs of all heads back to the width of the stream.
        hidden: Module that projects the inside of the MLP back; the first of these names that a block has.
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
    query: str
    key: str
    value: str
    heads: str
    hidden: tuple[str, ...]
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


Parts = Sublayers | Residual | None
"""What is known of the inside of a network's blocks."""


def knows(parts: Parts, tap: Tap) -> bool:
    """Whether it is known where a tap inside a block is read; what enters a block is known of all."""
    if tap in ("skip", "branch"):
        return isinstance(parts, Residual)
    return tap == "input" or isinstance(parts, Sublayers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How to build one model type of transformers, and where its parts are.

    Attributes:
        model_type: Its name in ``config.json``.
        model: Name of the class that holds the weights, in transformers or in `zoo.load.rotary_vit`.
        checkpoint_class: If given, only for checkpoints whose configuration names this class.
        tower_of: Model type of image-text models whose vision tower it is; "" for none.
        pooling_key: Key of the configuration that adds attention pooling, of no use here; "" for none.
        body: Path of the part of ``model`` whose forward is run; the empty string for all of it.
        blocks: Path of the blocks below ``model``; ``*`` stands for each stage.
        final_norm: Path of the norm after the last block; None where there is none over all tokens.
        mean_pooled: Whether the final norm is absent from checkpoints that say ``use_mean_pooling``.
        prefix_tokens: Tokens before the patch tokens, without registers.
        has_cls: Whether the first of them is a class token.
        interpolates: Whether position embeddings are fitted to the image only when the forward is asked to.
        layout: Axes of what its blocks pass on.
        hierarchical: Whether blocks give tokens whose grid and width change from stage to stage.
        pooling_option: Whether the class takes ``add_pooling_layer``.
        unused: Patterns of keys on which no feature depends, beside those of all architectures.
        parts: Where the parts of its blocks are; None where they are not known.
        family: Family of an unknown checkpoint of this type.
        normalisation: What its images are normalised with where no preprocessor configuration says so.
    """

    model_type: str
    model: str
    checkpoint_class: str | None = None
    tower_of: str = ""
    pooling_key: str = ""
    body: str = ""
    blocks: str
    final_norm: str | None
    mean_pooled: bool = False
    prefix_tokens: int = 1
    has_cls: bool = True
    interpolates: bool = False
    layout: StreamLayout = "tokens"
    hierarchical: bool = False
    pooling_option: bool = False
    unused: tuple[str, ...] = ()
    parts: Parts = None
    family: str = "other"
    normalisation: Normalisation = IMAGENET


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsNames:
    """The names that tensors have in the authors' files, and those of transformers in their place.

    Attributes:
        layout: What errors call the authors' names.
        fixed: Names outside the blocks, old to new.
        block: Names inside a block, old to new; several new ones get equal parts of the rows.
        old_block: What comes before the old names of block ``{}``.
        new_block: The same of the new names.
        unused: Patterns of tensors on which no feature depends.
        patches: Old name of the patch embedding's weight.
        hidden: Old name, in a block, of the weight whose rows are the channels inside the MLP; "" for none.
    """

    layout: str
    fixed: Mapping[str, str]
    block: Mapping[str, str | tuple[str, ...]]
    old_block: str
    new_block: str
    unused: tuple[str, ...]
    patches: str
    hidden: str


def affine(names: Mapping[str, str]) -> dict[str, str]:
    """Names of weight and bias of each module in a table of modules."""
    return {f"{old}.{kind}": f"{new}.{kind}" for old, new in names.items() for kind in ("weight", "bias")}


def split_affine(names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Names of weight and bias of modules whose rows are split among several."""
    return {
        f"{old}.{kind}": tuple(f"{part}.{kind}" for part in new)
        for old, new in names.items()
        for kind in ("weight", "bias")
    }

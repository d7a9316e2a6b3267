"""What is said of one supported architecture of transformers: how it is built, and where its parts are."""

from dataclasses import dataclass

from transformers import PreTrainedModel

from zoo.normalisation import IMAGENET, Normalisation

_HEADS = r"^(classifier|head|lm_head|pooler|.*\.pooler|cls_classifier|distillation_classifier)\."
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
        units: Whether blocks give tokens in the order of mask units: `zoo.look.units`.
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
    units: bool = False
    hierarchical: bool = False
    pooling_option: bool = False
    unused: tuple[str, ...] = ()
    family: str = "other"
    normalisation: Normalisation = IMAGENET

"""Changes to networks of transformers: images of any size, rules of position embeddings, missing skips.

Rules for absolute position embeddings resize the training grid, bicubically but for one, and leave a grid of
the training's size unchanged. ``huggingface`` is the behaviour of the network's class in transformers: it
passes the size of the new grid to the resizing, so that the edges of both grids are aligned (for DINOv2 with
registers, antialiased as well). ``dino`` passes a scale, (cells + 0.1) / training cells, as the authors of
DINO do so that rounding never loses a cell; the source points shift a little. ``timm`` passes the size and
antialiases, as timm does: if the new grid is coarser, the kernel widens with it, and it is always the kernel
of image libraries (a = -0.5 instead of -0.75). ``google`` is the rule of ViT's authors, for whom resizing is
bilinear and the outermost positions of both grids are the same ones: ``scipy.ndimage.zoom`` of order 1
(google-research/vision_transformer). Relative and rotary positions have rules of their own, which none of
these changes.
"""

from collections.abc import Sequence
from functools import partial
from math import isqrt
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from layerboard.zoo.features.weights import position_table
from layerboard.zoo.spec import Interpolation

# The offset that DINO adds to the number of cells before it divides: ``vision_transformer.py`` of its
# repository.
OFFSET = 0.1
# Entry of a ``config.json`` that lists blocks that were trained without skip connections, from 1.
WITHOUT_SKIP = "blocks_without_skip"


def adapt(model: PreTrainedModel, blocks: Sequence[Any]) -> None:
    """Make a network take images of any size, in any order; remove skips that its training lacked."""
    config = model.config
    for number in getattr(config, WITHOUT_SKIP, ()):
        remove_skips(blocks[number - 1])
    if config.model_type == "swin":
        for block in blocks:
            _fix_windows(block, int(config.window_size), int(block.shift_size))
    elif config.model_type == "aimv2_vision_model" and not config.is_native:
        _fit_table(model.get_submodule("embeddings"), int(config.patch_size))
    elif config.model_type == "sam_vision_model":
        _fit_cells(model.get_submodule("vision_encoder"), int(config.patch_size))
    elif config.model_type == "vjepa2":
        _fit_clip(model.get_submodule("encoder"), int(config.patch_size))


def remove_skips(block: Any) -> None:  # noqa: ANN401  # gets another method
    """Make a ``ViTLayer`` output its attention and then its MLP alone, without adding anything to them.

    For studies such as Raghu et al., arXiv:2108.08810.
    """

    def forward(hidden_states: Tensor, attention_mask: Tensor | None = None, **options: object) -> Tensor:
        attended, _ = block.attention(block.layernorm_before(hidden_states), attention_mask, **options)
        output: Tensor = block.mlp(block.layernorm_after(attended))
        return output

    block.forward = forward


def _fix_windows(block: nn.Module, window: int, shift: int) -> None:
    """Make a Swin block with windows of that many cells treat every image alike, whatever it saw before.

    The block in transformers remembers the smallest grid that it was ever given: it shrinks its window to
    that grid permanently, and then fails, since its table of relative positions has a fixed size. Here a
    smaller grid is padded to one window, as grids that are no multiple of the window are anyway. As in Swin,
    windows are shifted only if the grid is larger than one of them.
    """

    def before(
        module: nn.Module, inputs: tuple[Tensor, tuple[int, int]], options: dict[str, object]
    ) -> tuple[tuple[Tensor, tuple[int, int]], dict[str, object]]:
        is_one_window = min(inputs[1]) <= window
        vars(module).update(window_size=window, shift_size=0 if is_one_window else shift)
        return inputs, options | {"always_partition": True}

    block.register_forward_pre_hook(before, with_kwargs=True)


def _fit_table(embeddings: Any, patch: int) -> None:  # noqa: ANN401  # gets a method
    """Make embeddings that always use their whole ``position_embedding`` table take images of any size.

    The method has the name that it has in other networks, so that `use_rule` can replace it.
    """
    sides = [0, 0]

    def see(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        sides[:] = inputs[0].shape[-2:]

    def fit(_: nn.Module, __: tuple[Tensor, ...], table: Tensor) -> Tensor:
        fitted: Tensor = embeddings.interpolate_pos_encoding(table, *sides)
        return fitted

    embeddings.interpolate_pos_encoding = partial(_fitted, embeddings, patch, "huggingface")
    embeddings.register_forward_pre_hook(see)
    embeddings.get_submodule("position_embedding").register_forward_hook(fit)


def _fit_cells(encoder: Any, patch: int) -> None:  # noqa: ANN401  # gets and loses attributes
    """Make a ``SamVisionEncoder`` take images of any size, with its table of positions in the usual place.

    Its class refuses images of another size and adds the table unchanged. Here the patch embedding adds it,
    resized if needed, with the names that `_fit_table` gives.
    """
    patches, table = encoder.patch_embed, encoder.pos_embed
    encoder.pos_embed = None
    encoder.embeddings = patches
    patches.position_embeddings = nn.Parameter(table.detach().flatten(1, 2), requires_grad=False)

    def admit(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        vars(module).update(image_size=tuple(inputs[0].shape[-2:]))

    def add(_: nn.Module, inputs: tuple[Tensor, ...], cells: Tensor) -> Tensor:
        rows: Tensor = patches.interpolate_pos_encoding(cells, *inputs[0].shape[-2:])
        return cells + rows.view(1, *cells.shape[1:])

    patches.interpolate_pos_encoding = partial(_fitted, patches, patch, "huggingface")
    patches.register_forward_pre_hook(admit)
    patches.register_forward_hook(add)


def _fit_clip(encoder: Any, patch: int) -> None:  # noqa: ANN401  # its blocks get a method
    """Make a ``VJEPA2Encoder`` take images of any size, each as a clip of one frame, which it doubles.

    Its attention layers assume the training grid. Here they are given the grid of the image.
    """
    columns = [0]

    def see(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor]:
        columns[0] = inputs[0].shape[-1] // patch
        return (inputs[0][:, None],)

    def positions(tokens: Tensor, masks: object = None) -> tuple[Tensor, Tensor, Tensor]:
        ids = torch.arange(tokens.shape[1], device=tokens.device)
        return torch.zeros_like(ids), ids // columns[0], ids % columns[0]

    encoder.embeddings.register_forward_pre_hook(see)
    for block in encoder.layer:
        block.attention.get_position_ids = positions


class MapNorm(nn.Module):
    """A norm over channels, for feature maps [batch channels height width]."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, maps: Tensor) -> Tensor:
        normalised: Tensor = self.norm(maps.permute(0, 2, 3, 1))
        return normalised.permute(0, 3, 1, 2)


def fitted_positions(
    table: Tensor, cells: tuple[int, int], rule: Interpolation | Literal["bilinear"]
) -> Tensor:
    """Position embeddings for a grid of ``cells`` (rows, columns), resized in float32 by a rule.

    The table, whose dtype they have, is that of the training, [1 tokens dim]: prefix tokens, then a square
    grid in row-major order. The rule ``huggingface`` is here that of most classes of transformers.
    """
    side = isqrt(table.shape[1])
    if cells == (side, side):
        return table
    prefix = table.shape[1] - side * side
    grid = table[:, prefix:].reshape(1, side, side, -1).permute(0, 3, 1, 2).float()
    if rule == "dino":
        scale = [(count + OFFSET) / side for count in cells]
        fitted = nn.functional.interpolate(grid, scale_factor=scale, mode="bicubic")
    elif rule == "google":
        fitted = nn.functional.interpolate(grid, size=cells, mode="bilinear", align_corners=True)
    else:
        mode = "bilinear" if rule == "bilinear" else "bicubic"
        fitted = nn.functional.interpolate(grid, size=cells, mode=mode, antialias=rule == "timm")
    return torch.cat([table[:, :prefix], fitted.to(table.dtype).flatten(2).transpose(1, 2)], dim=1)


def use_rule(body: nn.Module, stride: int, rule: Interpolation) -> None:
    """Make a network resize absolute position embeddings by a rule; ``stride`` is the side of its cells."""
    embeddings: Any = getattr(body, "embeddings", None)
    if rule != "huggingface" and position_table(embeddings) is not None:
        embeddings.interpolate_pos_encoding = partial(_fitted, embeddings, stride, rule)


def _fitted(embeddings: nn.Module, stride: int, rule: Interpolation, *given: Any) -> Tensor:  # noqa: ANN401
    """Replaces a method of transformers whose last arguments are the sides of the image in pixels."""
    height, width = given[-2:]
    table = position_table(embeddings)
    assert table is not None
    return fitted_positions(table.view(1, -1, table.shape[-1]), (height // stride, width // stride), rule)

"""Small changes to networks of transformers whose forward would not do for images of every size."""

from collections.abc import Sequence
from functools import partial
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from zoo.features.weights import position_table
from zoo.spec import Interpolation


def adapt(model: PreTrainedModel, blocks: Sequence[Any]) -> None:
    """Change what a network of transformers needs so that it takes images of any size, in any order.

    Blocks that were trained without their skip connections lose them here, too.
    """
    config = model.config
    for number in getattr(config, WITHOUT_SKIP, ()):
        remove_skips(blocks[number - 1])
    if config.model_type == "swin":
        for block in blocks:
            fix_windows(block, int(config.window_size), int(block.shift_size))
    elif config.model_type == "aimv2_vision_model" and not config.is_native:
        fit_table(model.get_submodule("embeddings"), int(config.patch_size))
    elif config.model_type == "sam_vision_model":
        fit_cells(model.get_submodule("vision_encoder"), int(config.patch_size))
    elif config.model_type == "vjepa2":
        fit_clip(model.get_submodule("encoder"), int(config.patch_size))


def fix_windows(block: nn.Module, window: int, shift: int) -> None:
    """Make a block of Swin treat every image in the same way, whatever it saw before.

    The block of transformers remembers the smallest grid that it was ever given: it shrinks its window to
    that grid, for good, and then fails, since its table of relative positions has one size. Here a smaller
    grid is padded to one window, as grids that are no multiple of the window are anyway. As in Swin, windows
    are shifted only where the grid is larger than one of them.

    Args:
        block: One ``SwinLayer``.
        window: Cells a side of its windows.
        shift: Cells by which its windows are shifted.
    """

    def before(
        module: nn.Module, inputs: tuple[Tensor, tuple[int, int]], options: dict[str, object]
    ) -> tuple[tuple[Tensor, tuple[int, int]], dict[str, object]]:
        is_one_window = min(inputs[1]) <= window
        vars(module).update(window_size=window, shift_size=0 if is_one_window else shift)
        return inputs, options | {"always_partition": True}

    block.register_forward_pre_hook(before, with_kwargs=True)


def fit_table(embeddings: Any, patch: int) -> None:  # noqa: ANN401  # gets a method
    """Make embeddings with a table of positions for one image size take every size.

    The table is resized bicubically to the image's grid, as transformers does it for other networks; the
    method has the name that it has there, so that `zoo.load.adapters` can put another rule in its place.

    Args:
        embeddings: Embeddings whose ``position_embedding`` is always asked for the whole table.
        patch: Their patch size in pixels.
    """
    sides = [0, 0]

    def see(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        sides[:] = inputs[0].shape[-2:]

    def fit(_: nn.Module, __: tuple[Tensor, ...], table: Tensor) -> Tensor:
        fitted: Tensor = embeddings.interpolate_pos_encoding(table, *sides)
        return fitted

    def interpolate(table: Tensor, height: int, width: int) -> Tensor:
        return resized_table(table, (height // patch, width // patch))

    embeddings.interpolate_pos_encoding = interpolate
    embeddings.register_forward_pre_hook(see)
    embeddings.get_submodule("position_embedding").register_forward_hook(fit)


def fit_cells(encoder: Any, patch: int) -> None:  # noqa: ANN401  # gets and loses attributes
    """Make SAM's encoder take images of every size, and keep its table of positions where others have it.

    Its class refuses images of another size and adds the table as it is. Here the patch embedding adds it,
    resized where need be, with the names that `fit_table` gives.

    Args:
        encoder: A ``SamVisionEncoder``.
        patch: Its patch size in pixels.
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

    def interpolate(_: Tensor, height: int, width: int) -> Tensor:
        return resized_table(patches.position_embeddings, (height // patch, width // patch))

    patches.interpolate_pos_encoding = interpolate
    patches.register_forward_pre_hook(admit)
    patches.register_forward_hook(add)


def fit_clip(encoder: Any, patch: int) -> None:  # noqa: ANN401  # its blocks get a method
    """Make V-JEPA's encoder take images of every size, each as a clip of one frame, which its class doubles.

    Its attentions take the grid for that of the training. Here they are told the image's.

    Args:
        encoder: A ``VJEPA2Encoder``.
        patch: Its patch size in pixels.
    """
    columns = [0]

    def see(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor]:
        columns[0] = inputs[0].shape[-1] // patch
        return (inputs[0][:, None],)

    def places(tokens: Tensor, masks: object = None) -> tuple[Tensor, Tensor, Tensor]:
        del masks
        ids = torch.arange(tokens.shape[1], device=tokens.device)
        return torch.zeros_like(ids), ids // columns[0], ids % columns[0]

    encoder.embeddings.register_forward_pre_hook(see)
    for block in encoder.layer:
        block.attention.get_position_ids = places


def resized_table(table: Tensor, cells: tuple[int, int]) -> Tensor:
    """Positions of a square grid, [1 tokens dim], bicubically resized to rows and columns."""
    side = isqrt(table.shape[1])
    if cells == (side, side):
        return table
    grid = table.view(1, side, side, -1).permute(0, 3, 1, 2)
    fitted = nn.functional.interpolate(grid.float(), size=cells, mode="bicubic")
    return fitted.to(table.dtype).flatten(2).transpose(1, 2)


class MapNorm(nn.Module):
    """A norm over channels, for feature maps [batch channels height width]."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, maps: Tensor) -> Tensor:
        """The normalised maps, of the same shape."""
        normalised: Tensor = self.norm(maps.permute(0, 2, 3, 1))
        return normalised.permute(0, 3, 1, 2)


WITHOUT_SKIP = "blocks_without_skip"
"""Entry of a ``config.json`` that lists such blocks, from 1."""


def remove_skips(block: Any) -> None:  # noqa: ANN401  # gets another method
    """Make a ``ViTLayer`` hand on what its attention and then its MLP give, adding nothing to them."""

    def forward(hidden_states: Tensor, attention_mask: Tensor | None = None, **options: object) -> Tensor:
        attended, _ = block.attention(block.layernorm_before(hidden_states), attention_mask, **options)
        output: Tensor = block.mlp(block.layernorm_after(attended))
        return output

    block.forward = forward


OFFSET = 0.1
"""What DINO adds to the number of cells before it divides; ``vision_transformer.py`` of its repository."""


def fitted_positions(table: Tensor, cells: tuple[int, int], rule: Interpolation) -> Tensor:
    """Position embeddings of a grid by a rule.

    Args:
        table: Those of the training, [1 tokens dim]: prefix tokens, then a square grid in row-major order.
        cells: Rows and columns of the grid that is wanted.
        rule: The rule; ``huggingface`` is here what most classes of transformers do.

    Returns:
        [1 prefix + rows * columns, dim], in the table's dtype; resized in float32.
    """
    side = isqrt(table.shape[1])
    if cells == (side, side):
        return table
    prefix = table.shape[1] - side * side
    grid = table[:, prefix:].reshape(1, side, side, -1).permute(0, 3, 1, 2).float()
    if rule == "dino":
        scale = [(count + OFFSET) / side for count in cells]
        fitted = nn.functional.interpolate(grid, scale_factor=scale, mode="bicubic")
    else:
        fitted = nn.functional.interpolate(grid, size=cells, mode="bicubic", antialias=rule == "timm")
    rows = fitted.to(table.dtype).flatten(2).transpose(1, 2)
    return torch.cat([table[:, :prefix], rows], dim=1)


def use_rule(body: nn.Module, stride: int, rule: Interpolation) -> None:
    """Make a network fit its absolute position embeddings by a rule; one that has none stays as it is.

    Args:
        body: A network of transformers, whose own method is that of ``huggingface``.
        stride: Pixels a side of the cells that it adds them to.
        rule: The rule.
    """
    embeddings = getattr(body, "embeddings", None)
    if rule != "huggingface" and embeddings is not None and position_table(embeddings) is not None:
        embeddings.interpolate_pos_encoding = partial(_fitted, embeddings, stride, rule)


def _fitted(embeddings: nn.Module, stride: int, rule: Interpolation, *given: Any) -> Tensor:  # noqa: ANN401
    """Stands in for the method of transformers, which is told the image's sides in pixels last.

    First come the tokens, and the table in some networks; neither is needed.
    """
    height, width = given[-2:]
    table = position_table(embeddings)
    assert table is not None
    return fitted_positions(table.view(1, -1, table.shape[-1]), (height // stride, width // stride), rule)

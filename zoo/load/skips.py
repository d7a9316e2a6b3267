"""Blocks of a Vision Transformer without skip connections, for interventional studies.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, arXiv:2108.08810.
"""

from typing import Any

from torch import Tensor

WITHOUT_SKIP = "blocks_without_skip"
"""Entry of a ``config.json`` that lists such blocks, from 1."""


def remove_skips(block: Any) -> None:  # noqa: ANN401  # gets another method
    """Make a ``ViTLayer`` hand on what its attention and then its MLP give, adding nothing to them."""

    def forward(hidden_states: Tensor, attention_mask: Tensor | None = None, **options: object) -> Tensor:
        attended, _ = block.attention(block.layernorm_before(hidden_states), attention_mask, **options)
        output: Tensor = block.mlp(block.layernorm_after(attended))
        return output

    block.forward = forward

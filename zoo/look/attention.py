"""Attention probabilities of a network, one block at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from zoo.errors import InputError
from zoo.features import AttentionMaps
from zoo.look.network import Network
from zoo.look.split import Cells
from zoo.look.sublayers import Sublayers
from zoo.spec import BackboneSpec, Layer

EAGER = "eager"
"""Name that transformers gives to attention that computes its probabilities as a tensor."""


def gives_probabilities(network: Network) -> bool:
    """Whether the network can be made to compute its attention probabilities as tensors."""
    parts = network.parts
    return (
        isinstance(parts, Sublayers)
        and parts.gives_probabilities
        and hasattr(_configuration(network), "_attn_implementation")
    )


def _configuration(network: Network) -> Any:  # noqa: ANN401  # that of transformers, which takes seconds to import
    """What a network of transformers was built by; None for another one."""
    return getattr(network.body, "config", None)


@contextmanager
def eager(network: Network) -> Iterator[None]:
    """Inside, a network that `gives_probabilities` computes them; afterwards its usual attention is back.

    Its attentions read the word in their configuration in every forward, so that two assignments are all.
    """
    configuration = _configuration(network)
    usual = configuration._attn_implementation
    configuration._attn_implementation = EAGER
    try:
        yield
    finally:
        configuration._attn_implementation = usual


def watch_attention(
    network: Network, layer: Layer, show: Callable[[Layer, Tensor | None], None]
) -> RemovableHandle:
    """Hook that shows the probabilities of a block when the forward reaches it, and drops them afterwards.

    It must be there before any hook that reads what the attention adds to the stream, and shown is None where
    the network computed none.
    """
    assert isinstance(network.parts, Sublayers)
    block = network.blocks[layer.index - 1]

    def after(
        _: nn.Module, __: tuple[Tensor, ...], output: tuple[Tensor, Tensor | None]
    ) -> tuple[Tensor, None]:
        show(layer, output[1])
        return output[0], None

    return block.get_submodule(network.parts.attends).register_forward_hook(after)


def attention_maps(
    spec: BackboneSpec, layer: Layer, found: Tensor | None, batch: int, cells: Cells
) -> AttentionMaps:
    """Attention of a layer from its probabilities [batch heads queries keys].

    Raises:
        InputError: They are not those that the entry promises.
    """
    tokens = spec.prefix_tokens + cells[0] * cells[1]
    if found is None or tuple(found.shape) != (batch, spec.heads, tokens, tokens):
        raise InputError(
            f"{spec.name}: the probabilities of layer {layer} should be [batch heads queries keys] with "
            f"{spec.heads} heads and {tokens} tokens; the network gives "
            f"{'none' if found is None else list(found.shape)}."
        )
    return AttentionMaps(layer, found, spec.prefix_tokens, cells)

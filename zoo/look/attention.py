"""Attention probabilities of a network, one block at a time."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from zoo.errors import InputError
from zoo.features import AttentionMaps, AttentionVisitor
from zoo.look.network import Network
from zoo.look.split import Cells
from zoo.spec import BackboneSpec, Layer

EAGER = "eager"
"""Name that transformers gives to attention that computes its probabilities as a tensor."""


def attention_layers(spec: BackboneSpec, layers: Collection[Layer] | None) -> tuple[Layer, ...]:
    """The attentions to show, in order; those of all blocks if None.

    Raises:
        InputError: One of them does not exist.
    """
    every = tuple(Layer(index, "attention") for index in range(1, spec.depth + 1))
    if spec.heads is None:
        raise InputError(f"{spec.name} has no attention.")
    unknown = [] if layers is None else [layer for layer in layers if layer not in every]
    if unknown:
        raise InputError(
            f"{spec.name} has no attention probabilities of layer {unknown[0]}; it has those of "
            f"{every[0]} to {every[-1]}."
        )
    return every if layers is None else tuple(layer for layer in every if layer in set(layers))


@contextmanager
def eager(spec: BackboneSpec, network: Network) -> Iterator[None]:
    """Inside, the network computes its attention probabilities as tensors.

    Raises:
        InputError: It cannot.
    """
    body = network.body
    known = network.sublayers is not None and network.sublayers.probabilities is not None
    if not known or not isinstance(body, PreTrainedModel):
        raise InputError(f"{spec.name} is a network whose attention probabilities cannot be read.")
    usual = body.config._attn_implementation
    body.set_attn_implementation(EAGER)
    try:
        yield
    finally:
        body.set_attn_implementation(usual)


def watch_attention(
    spec: BackboneSpec,
    network: Network,
    layer: Layer,
    cells: Cells,
    visitor: AttentionVisitor,
) -> RemovableHandle:
    """Hook that shows the probabilities of a block when the forward reaches it, and drops them afterwards."""
    assert network.sublayers is not None
    assert network.sublayers.probabilities is not None
    block = network.blocks[layer.index - 1]

    def after(
        _: nn.Module, __: tuple[Tensor, ...], output: tuple[Tensor, Tensor | None]
    ) -> tuple[Tensor, None]:
        visitor(AttentionMaps(layer, _checked(spec, layer, output[1], cells), spec.prefix_tokens, cells))
        return output[0], None

    return block.get_submodule(network.sublayers.probabilities).register_forward_hook(after)


def _checked(spec: BackboneSpec, layer: Layer, found: Tensor | None, cells: Cells) -> Tensor:
    tokens = spec.prefix_tokens + cells[0] * cells[1]
    if found is None or tuple(found.shape[1:]) != (spec.heads, tokens, tokens):
        raise InputError(
            f"{spec.name}: the probabilities of layer {layer} should be [batch heads queries keys] with "
            f"{spec.heads} heads and {tokens} tokens; the network gives "
            f"{'none' if found is None else list(found.shape)}."
        )
    return found

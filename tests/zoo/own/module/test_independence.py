"""Networks whose features of an image depend on its batch or on chance are refused, honest ones are taken."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from layerboard.zoo.errors import InputError
from layerboard.zoo.own.module.network import given_network
from layerboard.zoo.own.module.options import ModuleOptions
from tests.zoo.own.module.networks import SIZE, ConvNet, Fused, TokensFirst, Vit

Change = Callable[[Tensor], Tensor]
"""Of activations with the batch as first axis."""


def others_of(x: Tensor) -> tuple[int, ...]:
    """All axes but that of the batch."""
    return tuple(range(1, x.ndim))


def one_number_of_a_neighbour(x: Tensor) -> Tensor:
    first = (torch.arange(x[0].numel()) == 0).view(x[:1].shape)
    return x + 0.3 * x[-1:].abs().mean() * first


def by_experts(x: Tensor) -> Tensor:
    """Each image by one of two experts, those of one together: other sizes of products, the same numbers."""
    draw, out = torch.Generator().manual_seed(0), x.clone()
    first = x.flatten(1).sum(1) > 0
    for chosen in (first, ~first):
        matrix = torch.randn(x.shape[-1], x.shape[-1], generator=draw).to(x) / x.shape[-1] ** 0.5
        out[chosen] = x[chosen] + 0.3 * x[chosen] @ matrix
    return out


def eight_bits(x: Tensor) -> Tensor:
    scale = x.abs().amax(others_of(x), keepdim=True) / 127
    return (x / scale).round() * scale


def in_bfloat16(x: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return (x @ (1.3 * torch.eye(x.shape[-1], device=x.device))).to(x.dtype)


DEPENDENT: dict[str, Change] = {
    "batch mean": lambda x: x + 0.3 * x.mean(0, keepdim=True),
    "batch maximum": lambda x: x + 0.3 * x.amax(0, keepdim=True),
    "softmax over the batch": lambda x: x + 0.3 * x.softmax(0),
    "statistics of the batch": lambda x: functional.batch_norm(x, None, None, training=True),
    "deviation of the batch": lambda x: x / (x.std() + 0.3),
    "neighbour": lambda x: x + 0.3 * x.roll(1, 0),
    "one number of a neighbour": one_number_of_a_neighbour,
    "rank in the batch": lambda x: x + 0.3 * x.argsort(0).to(x),
    "size of the batch": lambda x: x * len(x),
    "dropout": lambda x: functional.dropout(x, 0.1),
    "noise": lambda x: x + 0.003 * torch.randn_like(x),
}
HONEST: dict[str, Change] = {
    "mean of the image": lambda x: x - 0.3 * x.mean(others_of(x), keepdim=True),
    "deviation of the image": lambda x: x / x.std(others_of(x), keepdim=True),
    "softmax over channels": lambda x: x + 0.3 * x.softmax(-1),
    "sorted channels": lambda x: x.sort(-1).values,
    "products of eight bits": eight_bits,
    "one image at a time": lambda x: torch.cat([one / one.std() for one in x.split(1)]),
    "experts": by_experts,
    "bfloat16 inside": in_bfloat16,
    "running statistics": lambda x: functional.batch_norm(
        x, torch.full(x.shape[1:2], 0.1), torch.full(x.shape[1:2], 2.0)
    ),
    "a constant noise": lambda x: (
        x + 0.3 * torch.randn(x.shape[1:], generator=torch.Generator().manual_seed(0)).to(x)
    ),
}
NETWORKS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "tokens": (partial(Vit, 0), "norm"),
    "class token": (partial(Vit, kind=Fused), "blocks.2"),
    "tokens first": (TokensFirst, "blocks.0"),
    "maps": (ConvNet, "layer1.0"),
}
"""Layouts, and the module whose output is changed."""

FEW = ("batch mean", "one number of a neighbour", "dropout", "products of eight bits", "experts")
"""Changes that every layout is tried with; the others are of tokens alone."""


def cases(changes: dict[str, Change]) -> list[tuple[str, str]]:
    """Names of layouts and changes."""
    return [(net, name) for net in NETWORKS for name in changes if net == "tokens" or name in FEW]


def take(network: str, change: Change) -> None:
    """Give a network with such a change, or raise InputError."""
    torch.manual_seed(0)
    make, place = NETWORKS[network]
    net = make()
    changed = net.get_submodule(place)
    if place == "norm":
        nn.init.normal_(changed.weight, std=10)  # else images have nearly equal statistics
    axis = int(network == "tokens first")
    changed.register_forward_hook(lambda _, __, x: change(x.transpose(0, axis)).transpose(0, axis))
    given_network(net, ModuleOptions(name="changed", image_size=SIZE))


@pytest.mark.parametrize(("network", "name"), cases(DEPENDENT))
def test_a_dependent_network_is_refused(network: str, name: str) -> None:
    with pytest.raises(InputError, match=r"the features of an image change by .* with the images beside it"):
        take(network, DEPENDENT[name])


@pytest.mark.parametrize(("network", "name"), cases(HONEST))
def test_an_honest_network_is_taken(network: str, name: str) -> None:
    take(network, HONEST[name])

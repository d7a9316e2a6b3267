"""Networks whose features of an image depend on its batch or on chance, and honest ones like them."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from layerboard.zoo.errors import InputError
from layerboard.zoo.own.module.network import given_network
from layerboard.zoo.own.module.options import ModuleOptions
from layerboard.zoo.registry.find import find
from tests.faults.counts import Count
from tests.zoo.own.module.networks import SIZE, ConvNet, Fused, Swin, TokensFirst, Vit

# A change of activations with the batch as first axis, by a module that may keep something, and a number.
Change = Callable[[nn.Module, Tensor, float], Tensor]


def _memory(module: nn.Module, x: Tensor, weight: float) -> Tensor:
    mean = x.mean()
    module.kept = 0.9 * getattr(module, "kept", mean) + 0.1 * mean
    return x + weight * module.kept


def _experts(_: nn.Module, x: Tensor, weight: float) -> Tensor:
    """Each image by one of two experts, those of one together: other sizes of products, the same numbers."""
    draw, out = torch.Generator().manual_seed(0), x.clone()
    first = x.flatten(1).sum(1) > 0
    for chosen in (first, ~first):
        width = x.shape[-1]
        matrix = torch.randn(width, width, generator=draw).to(x) / width**0.5
        out[chosen] = x[chosen] + weight * x[chosen] @ matrix
    return out


def _autocast(_: nn.Module, x: Tensor, weight: float) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        matrix = torch.eye(x.shape[-1], device=x.device) * (1 + weight)
        return (x @ matrix).to(x.dtype)


DEPENDENT: dict[str, Change] = {
    "batch mean": lambda _, x, weight: x + weight * x.mean(0, keepdim=True),
    "batch maximum": lambda _, x, weight: x + weight * x.amax(0, keepdim=True),
    "softmax over the batch": lambda _, x, weight: x + weight * x.softmax(0),
    "statistics of the batch": lambda _, x, weight: functional.batch_norm(x, None, None, training=True),
    "deviation of the batch": lambda _, x, weight: x / (x.std() + weight),
    "neighbour": lambda _, x, weight: x + weight * x.roll(1, 0),
    "one number of a neighbour": lambda _, x, weight: x.index_add(
        0,
        torch.tensor([0]),
        weight * x[-1:].abs().mean() * (torch.arange(x[0].numel()) == 0).view(x[:1].shape),
    ),
    "rank in the batch": lambda _, x, weight: x + weight * x.argsort(0).to(x),
    "size of the batch": lambda _, x, weight: x * len(x),
    "dropout": lambda _, x, weight: functional.dropout(x, weight / 2),
    "noise": lambda _, x, weight: x + 0.01 * weight * torch.randn_like(x),
    "memory": _memory,
}
HONEST: dict[str, Change] = {
    "nothing": lambda _, x, weight: x,
    "mean of the image": lambda _, x, weight: x - weight * x.mean(tuple(range(1, x.ndim)), keepdim=True),
    "deviation of the image": lambda _, x, weight: x / x.std(tuple(range(1, x.ndim)), keepdim=True),
    "softmax over channels": lambda _, x, weight: x + weight * x.softmax(-1),
    "running statistics": lambda _, x, weight: functional.batch_norm(
        x, torch.full(x.shape[1:2], 0.1), torch.full(x.shape[1:2], 2.0)
    ),
    "sorted channels": lambda _, x, weight: x.sort(-1).values,
    "products of eight bits": lambda _, x, weight: (
        (x / (s := x.abs().amax(tuple(range(1, x.ndim)), keepdim=True) / 127)).round() * s
    ),
    "one image at a time": lambda module, x, weight: torch.cat([one / one.std() for one in x.split(1)]),
    "experts": _experts,
    "bfloat16 inside": _autocast,
    "a constant noise": lambda _, x, weight: (
        x + weight * torch.randn(x.shape[1:], generator=torch.Generator().manual_seed(0)).to(x)
    ),
}
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "tokens": partial(Vit, 0),
    "class token": Vit,
    "attention": partial(Vit, kind=Fused),
    "tokens first": TokensFirst,
    "maps": ConvNet,
    "cells": Swin,
}

MAPS = "maps = AveragePool <kernel_shape = [8, 8], strides = [8, 8]> (images)"
AXIS = "axis = Constant <value_ints = [0]> ()"
ONE = f"{AXIS} mean = ReduceMean <keepdims = 1> (maps, axis) out = Sub (maps, mean)"
NOISE = "noise = RandomNormalLike <scale = 0.01> (maps) out = Add (maps, noise)"
FILES: dict[str, tuple[bool, str, str]] = {  # whether it is honest, images at once, what follows the maps
    "nothing": (True, "N", "out = Identity (maps)"),
    "softmax over channels": (True, "N", "out = Softmax <axis = 1> (maps)"),
    "mean of one image at a time": (True, "1", ONE),
    "mean of a batch of two": (False, "2", ONE),
    "mean of the batch": (False, "N", ONE),
    "softmax over the batch": (False, "N", "out = Softmax <axis = 0> (maps)"),
    "random numbers": (False, "N", NOISE),
    "random numbers, one image at a time": (False, "1", NOISE),
    "random numbers with a seed": (False, "N", NOISE.replace("<", "<seed = 1.0, ")),
    "dropout": (
        False,
        "N",
        "p = Constant <value_float = 0.1> () on = Constant <value = bool {1}> () out = Dropout (maps, p, on)",
    ),
    "eight bits for the whole batch": (
        False,
        "N",
        "q, scale, zero = DynamicQuantizeLinear (maps) out = DequantizeLinear (q, scale, zero)",
    ),
    "training of a norm": (
        False,
        "N",
        "one = Constant <value_floats = [1.0, 1.0, 1.0]> () "
        "out, m, v = BatchNormalization <training_mode = 1> (maps, one, one, one, one)",
    ),
}


class Changed(nn.Module):
    """A module whose output is changed; one that is called a norm is looked for after the blocks."""

    def __init__(self, inner: nn.Module, axis: int, weight: float, change: Change) -> None:
        super().__init__()
        self.inner, self.axis, self.weight, self.change = inner, axis, weight, change

    def forward(self, x: Tensor) -> Tensor:
        out = self.inner(x).transpose(0, self.axis)
        return self.change(self, out, self.weight).transpose(0, self.axis)


class ChangedNorm(Changed):
    """A final norm."""


def mix_batches(root: Path, times: int, seed: int = 0) -> list[Count]:
    """Give networks, drawn over their layouts, places and weights, so many of each kind, and all files.

    What is wanted: honest ones are taken, others are refused with a sentence about the image and its batch.
    """
    draw, counts = random.Random(seed), []
    for kinds, honest in ((DEPENDENT, False), (HONEST, True)):
        count = Count(f"{'honest' if honest else 'dependent'} networks")
        for kind, change in kinds.items():
            for _ in range(max(1, times // 10)):
                name, place = draw.choice([*NETWORKS]), draw.choice(("first", "last", "norm"))
                net = _changed(NETWORKS[name](), place, draw.uniform(0.1, 1), change)
                torch.manual_seed(draw.randrange(1000))
                options = ModuleOptions(name="drawn", image_size=SIZE)
                count.note(f"{kind}, {place}, {name}", _problem(partial(given_network, net, options), honest))
        counts.append(count)
    return [*counts, _try_files(root)]


def _changed(net: nn.Module, place: str, weight: float, change: Change) -> nn.Module:
    """The network with a change after a block, or after its final norm."""
    if place == "norm" and not isinstance(net, TokensFirst):
        name = "bn" if isinstance(net, ConvNet) else "norm"
        nn.init.normal_(getattr(net, name).weight, std=10)  # else images have nearly equal statistics
        nn.init.normal_(getattr(net, name).bias)
        setattr(net, name, ChangedNorm(getattr(net, name), 0, weight, change))
        return net
    axis = int(isinstance(net, TokensFirst))
    rows = [module for module in net.modules() if isinstance(module, nn.ModuleList | nn.Sequential)]
    rows = [row for row in rows if all(hasattr(block, "mlp") or hasattr(block, "skip") for block in row)]
    changed = (0, 0) if place == "first" else (len(rows) - 1, len(rows[-1]) - 1)
    for number, row in enumerate(rows):
        for index, block in enumerate(row):
            here = change if (number, index) == changed else HONEST["nothing"]
            row[index] = Changed(block, axis, weight, here)
    return net


def _try_files(root: Path) -> Count:
    """The same with files of ONNX."""
    count = Count("files of ONNX, honest and dependent")
    try:
        import onnx
    except ImportError:
        return count
    root.mkdir(parents=True, exist_ok=True)
    for number, (kind, (honest, batch, body)) in enumerate(FILES.items()):
        shape = f"float[{batch}, 3, 32, 32] images) => (float[{batch}, 3, 4, 4] out"
        head = f'<ir_version: 9, opset_import: ["": 20]> net ({shape})'
        path = root / f"{number}.onnx"
        onnx.save(onnx.parser.parse_model(f"{head} {{ {MAPS} {body} }}"), path)
        count.note(kind, _problem(partial(find, [f"onnx:{path}"]), honest))
    return count


def _problem(take: Callable[[], object], honest: bool) -> str:
    """What is wrong with how a network was answered; "" if nothing is."""
    try:
        take()
    except InputError as error:
        said = str(error)
        meant = "features of an image change" in said
        return "" if meant and not honest else f"refused: {said[:150]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    return "" if honest else "taken without a word"

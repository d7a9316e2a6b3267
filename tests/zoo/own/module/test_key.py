"""The key of an own network: it differs for networks that differ in one setting, wherever that is kept."""

import copy
import functools
import pickle
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, spectral_norm

from layerboard.zoo.own.module.network import NetworkCopy, given_network
from layerboard.zoo.own.module.options import ModuleOptions

BIG = 200  # pixels: no probe is that large, so that only a description sees what such images change
OF_MODULE = 1.0
OF_CONTEXT: ContextVar[float] = ContextVar("of_context", default=1.0)


class Block(nn.Module):
    """Adds a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x).relu()


class Keeping(Block):
    """Keeps its activations and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.kept = 0, list[dict[str, Tensor]]()

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.kept = [{"x": super().forward(x)}]
        return self.kept[0]["x"]


class Normed(Block):
    """Has the spectral norm of torch's first form, which keeps a weight with a history."""

    def __init__(self) -> None:
        super().__init__()
        spectral_norm(self.conv)


class Net(nn.Module):
    """Scales what enters its blocks by a setting."""

    factor, least = 1.0, 0

    def __init__(
        self, setting: object = None, read: Callable[[Any], Any] = float, block: Any = Block
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem, self.blocks = nn.Conv2d(3, 8, 8, 8), nn.ModuleList(block() for _ in "ab")
        self.setting, self.read = setting, read

    def scale(self) -> Any:
        return self.factor if self.setting is None else self.read(self.setting)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        x = x * self.scale() if images.shape[-1] > self.least else x
        for block in self.blocks:
            x = block(x)
        return x


class Far(Net):
    """Scales large images only."""

    least = BIG


class Mode(Enum):
    HALF, WHOLE = 1.0, 2.0


@dataclass
class Options:
    value: float


class Slots:
    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value


def of_value(holder: Any) -> Any:
    return holder.value


def closure(value: float) -> Callable[[], float]:
    return lambda: value


KEPT = {value: Options(value) for value in (1.0, 2.0)}
SETTINGS: dict[str, tuple[Callable[[float], object], Callable[[Any], Any]]] = {
    "dictionary": (lambda value: {"a": [{"b": value}]}, lambda held: held["a"][0]["b"]),
    "tensor": (torch.tensor, float),
    "number of NumPy": (np.float32, float),
    "array": (lambda value: np.full(3, value), lambda held: float(held[0])),
    "partial": (lambda value: functools.partial(float, value), lambda held: held()),
    "closure": (closure, lambda held: held()),
    "default argument": (lambda value: lambda a=value: a, lambda held: held()),
    "Enum": (Mode, of_value),
    "dataclass": (Options, of_value),
    "slots": (Slots, of_value),
    "namespace": (lambda value: SimpleNamespace(value=value), of_value),
    "set": (lambda value: {0.5, value}, max),
    "bound method": (lambda value: {"a": value}.get, lambda held: held("a")),
    "weak reference": (lambda value: weakref.ref(KEPT[value]), lambda held: held().value),
    "generator": (lambda value: np.random.default_rng(int(value)), lambda held: copy.deepcopy(held).random()),
    "module in a list": (lambda value: [nn.LayerNorm(3, eps=value)], lambda held: held[0].eps),
}


def key(net: nn.Module) -> str:
    return given(net).revision


def given(net: nn.Module) -> NetworkCopy:
    return given_network(net, ModuleOptions(image_size=32))


@pytest.mark.parametrize("place", [*SETTINGS])
def test_networks_that_differ_in_one_setting_have_other_keys(place: str) -> None:
    """Only the description can tell, since no probe is an image that the setting changes."""
    make, read = SETTINGS[place]
    first, second, third = (key(Far(make(value), read)) for value in (1.0, 2.0, 1.0))
    assert first == third != second


def test_a_copy_has_the_key_and_a_probe_tells_a_setting_apart() -> None:
    make, read = SETTINGS["dictionary"]
    first, second = (Net(make(value), read) for value in (1.0, 2.0))
    assert key(first) == key(copy.deepcopy(first)) != key(second)


def hooked(value: float) -> nn.Module:
    net = Net()
    net.stem.register_forward_hook(lambda _, __, output: output * value)
    return net


def patched(value: float) -> nn.Module:
    net = Net()
    vars(net.stem)["forward"] = lambda images: nn.Conv2d.forward(net.stem, images) * value  # type: ignore[arg-type]
    return net


def parametrized(value: float) -> nn.Module:
    class Scaled(nn.Module):
        def forward(self, weight: Tensor) -> Tensor:
            return weight * value

    net = Net()
    parametrize.register_parametrization(net.stem, "weight", Scaled())
    return net


def of_class(value: float) -> nn.Module:
    return type("Own", (Net,), {"factor": value})()


def of_context(value: float) -> nn.Module:
    OF_CONTEXT.set(value)
    return Net(0, lambda _: OF_CONTEXT.get())


def of_module(value: float) -> nn.Module:
    global OF_MODULE  # as notebooks have settings
    OF_MODULE = value
    return Net(0, lambda _: OF_MODULE)


def with_buffer(value: float) -> nn.Module:
    net = Net()
    net.register_buffer("factor_", torch.tensor(value), persistent=False)
    net.read, net.setting = (lambda _: 1.0), 0
    return net


@pytest.mark.parametrize(
    "make", [hooked, patched, parametrized, of_class, of_context, of_module, with_buffer]
)
def test_so_have_those_whose_setting_is_no_attribute(make: Callable[[float], nn.Module]) -> None:
    first, second, third = (key(make(value)) for value in (1.0, 2.0, 1.0))
    assert first == third != second


@pytest.mark.parametrize("block", [Block, Keeping, Normed])
def test_a_network_that_was_trained_is_copied_and_equal_ones_share_a_key(block: type[Block]) -> None:
    net = Net(block=block)
    net(torch.rand(2, 3, 32, 32)).mean().backward()
    again = Net(block=block).eval()
    again.load_state_dict(net.state_dict())
    with torch.no_grad():
        again(torch.rand(3, 3, 40, 40))
    assert key(net) == key(again) == key(pickle.loads(pickle.dumps(again)))


def test_what_cannot_be_compared_is_said() -> None:
    class Handle:
        def __deepcopy__(self, memo: object) -> "Handle":
            return self

        def __reduce_ex__(self, protocol: object) -> Any:
            raise TypeError("a handle of a device")

    first, second = given(Net(Handle(), lambda _: 1.0)), given(Net(Handle(), lambda _: 1.0))
    assert first.revision != second.revision
    assert "its scores serve this copy alone: setting holds a" in first.lines[-1]

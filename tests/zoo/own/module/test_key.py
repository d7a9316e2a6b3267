"""The key of an own network: it differs for networks whose features differ, wherever that comes from."""

import copy
import pickle
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, spectral_norm

from layerboard.zoo.own.module.network import NetworkCopy, given_network
from layerboard.zoo.own.module.options import ModuleOptions

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

    factor = 1.0

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
        x = self.stem(images) * self.scale()
        for block in self.blocks:
            x = block(x)
        return x


def key(net: nn.Module) -> str:
    return given(net).revision


def given(net: nn.Module) -> NetworkCopy:
    return given_network(net, ModuleOptions(image_size=32))


def test_a_copy_has_the_key_and_a_probe_tells_a_setting_apart() -> None:
    first, second = (Net([value], lambda held: held[0]) for value in (1.0, 2.0))
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

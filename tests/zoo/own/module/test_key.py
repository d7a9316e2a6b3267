"""The key of an own network: it differs for networks whose features differ, wherever that comes from."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import spectral_norm

from layerboard.zoo.own.module.network import NetworkCopy, given_network
from layerboard.zoo.own.module.options import ModuleOptions

OF_MODULE = 1.0


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

    def __init__(
        self, setting: object = None, read: Callable[[Any], Any] = float, block: Any = Block
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem, self.blocks = nn.Conv2d(3, 8, 8, 8), nn.ModuleList(block() for _ in "ab")
        self.setting, self.read = setting, read

    def scale(self) -> Any:
        return 1.0 if self.setting is None else self.read(self.setting)

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


def of_module(value: float) -> nn.Module:
    global OF_MODULE  # as notebooks have settings
    OF_MODULE = value
    return Net(0, lambda _: OF_MODULE)


@pytest.mark.parametrize("make", [hooked, of_module])
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

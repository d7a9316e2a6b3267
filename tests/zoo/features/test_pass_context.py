"""Numbers of a pass do not depend on what is around it: settings of torch, threads, and forks."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.overrides import TorchFunctionMode

from layerboard import InputError, LayerEncoder, from_module, load
from layerboard.zoo.features import pass_context as contexts
from layerboard.zoo.features.pass_context import PassLock, pass_context

Around = Callable[[], AbstractContextManager[object]]


class Doubles(TorchFunctionMode):  # type: ignore[misc]  # torch says no types
    """Doubles what linear layers give."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        return 2 * found if func is torch.nn.functional.linear else found


@contextmanager
def setting(read: Callable[[], Any], write: Callable[[Any], object], value: object) -> Iterator[None]:
    """A setting of the process, which should still be there at the end."""
    before = read()
    write(value)
    try:
        yield
        assert read() == value
    finally:
        write(before)


def attribute(holder: object, name: str, value: object) -> Around:
    return partial(setting, partial(getattr, holder, name), partial(setattr, holder, name), value)


default_dtype = partial(setting, torch.get_default_dtype, torch.set_default_dtype)
AROUND: dict[str, tuple[Around, ...]] = {
    "one dtype": (
        lambda: torch.autocast("cpu", torch.bfloat16),
        torch.inference_mode,
        partial(default_dtype, torch.float64),
        partial(setting, torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"),
        partial(setting, torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 2),
        attribute(torch.backends.cudnn, "benchmark", True),
        partial(torch.autograd.set_detect_anomaly, True),
    ),
    "another dtype": (
        lambda: torch.autocast("cpu", torch.float16),
        torch.no_grad,
        partial(default_dtype, torch.bfloat16),
    ),
    "other functions": (Doubles,),
    "another device": (lambda: torch.device("meta"),),
}
"""Settings that are there together: any of them that a pass would see changes its numbers, or fails."""


def small_network() -> torch.nn.Module:
    torch.manual_seed(0)
    blocks = (torch.nn.Sequential(torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU()) for _ in "ab")
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 8, 8), torch.nn.Sequential(*blocks))


NETWORK = small_network()


def images(count: int) -> list[Image.Image]:
    draw = np.random.default_rng(0)
    return [Image.fromarray(draw.integers(0, 255, (50, 70, 3), np.uint8)) for _ in range(count)]


def loaded(name: str) -> Tensor:
    return load(name, layer=2)(images(2))


def of_module() -> Tensor:
    own = from_module(NETWORK, name="own", blocks="1.*", image_size=64, verbose=False)
    return torch.from_numpy(LayerEncoder(own, 2).transform(images(2)))


def shown() -> Tensor:
    pixels = torch.from_numpy(np.stack([np.asarray(each.resize((80, 80))) for each in images(2)]))
    return load("mini-mae", layer=1).module(pixels.permute(0, 3, 1, 2))


@pytest.mark.parametrize(
    "vectors", [partial(loaded, "mini-dino"), partial(loaded, "mini-resnet"), of_module, shown]
)
def test_no_setting_around_a_pass_is_in_its_numbers(vectors: Callable[[], Tensor]) -> None:
    expected = vectors()
    for name, settings in AROUND.items():
        with ExitStack() as around:
            for one in settings:
                around.enter_context(one())
            found = vectors()
        assert found.dtype == torch.float32, name
        assert torch.equal(found, expected), name


def test_gradients_are_there_for_those_who_ask() -> None:
    with torch.inference_mode(), pass_context(gradients=True):
        weight = torch.ones(2, requires_grad=True)
        (weight * weight).sum().backward()
    assert weight.grad is not None


@pytest.mark.parametrize(
    ("name", "around"),
    [("mini-dino", partial(torch.autocast, "cpu", torch.bfloat16)), ("mini-resnet", torch.no_grad)],
)
def test_threads_get_the_vectors_of_their_own_images(name: str, around: Around) -> None:
    every, encoder, cut = images(8), LayerEncoder(name, 3), load(name, layer=3)
    alone = np.concatenate([cut([image]).numpy() for image in every])
    pixels = [cut.preprocess(image)[None] for image in every]

    def vectors(number: int) -> np.ndarray[Any, Any]:
        at = number % 8
        with around():
            if number % 3 == 0:
                return encoder.transform([every[at]])[0]
            return (cut.module(pixels[at]) if number % 3 == 1 else cut([every[at]]))[0].numpy()

    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(vectors, range(24))]
    np.testing.assert_array_equal(found, alone[np.arange(24) % 8])


def test_settings_are_put_back_by_the_last_of_several_threads() -> None:
    with setting(torch.get_default_dtype, torch.set_default_dtype, torch.float64), ExitStack() as first:
        first.enter_context(contexts._shared)
        with contexts._shared:
            first.close()
            assert torch.get_default_dtype() == torch.float32
        assert torch.get_default_dtype() == torch.float64


def test_a_fork_says_that_it_cannot_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = PassLock()
    monkeypatch.setattr(contexts, "_first_process", [os.getpid() + 1])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    with pytest.raises(InputError, match=r"a fork of one in which torch has computed.*spawn"), lock:
        pass
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    with lock:
        pass

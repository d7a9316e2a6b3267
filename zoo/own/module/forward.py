"""Forward passes of a user's network that observe some of its modules."""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from layerboard.zoo.errors import InputError, in_brackets, shortened
from layerboard.zoo.features.layers import first_tensor
from layerboard.zoo.features.pass_context import is_out_of_memory, require_own_threads
from layerboard.zoo.own.module.options import OwnNetwork


class Call(NamedTuple):
    """One call of a module, with copies of the first tensors of its input and output; empty for none."""

    path: str
    given: Tensor
    gives: Tensor


def calls_of(net: nn.Module, images: Tensor, paths: Iterable[str]) -> list[Call]:
    """The calls of modules in a forward pass on normalised images, in the order in which they end.

    Raises InputError if the network does not take the images, or if a module cannot be watched.
    """
    entered: dict[str, list[Tensor]] = defaultdict(list)
    calls: list[Call] = []

    def enter(path: str, _: nn.Module, inputs: object, options: object) -> None:
        entered[path].append(_copy_of((inputs, options)))

    def leave(path: str, _: nn.Module, __: object, output: object) -> None:
        calls.append(Call(path, entered[path].pop(), _copy_of(output)))

    require_own_threads()
    with ExitStack() as hooks:
        for path in paths:
            module = net.get_submodule(path)
            try:
                hooks.callback(module.register_forward_hook(partial(leave, path)).remove)
            except RuntimeError as error:
                raise InputError(
                    f"{type(net).__name__}.{path} is a {type(module).__name__}, which cannot be watched; "
                    "give the network as it was before it was compiled"
                ) from error
            hooks.callback(module.register_forward_pre_hook(partial(enter, path), with_kwargs=True).remove)
        try:
            net(images)
        except Exception as error:
            if is_out_of_memory(error):
                raise MemoryError(
                    f"{type(net).__name__} runs out of memory on images {in_brackets(images.shape)}; free "
                    "some, or give a smaller image_size="
                ) from error
            reason = f"{type(error).__name__}: {shortened(str(error).strip().partition(chr(10))[0])}"
            raise InputError(
                f"{type(net).__name__} does not take images {in_brackets(images.shape)}: {reason}; give "
                "image_size=, or a module whose forward takes a batch of images alone"
            ) from error
    return calls


def _copy_of(content: object) -> Tensor:
    """A copy of the first tensor, which the network may change in place."""
    tensor = first_tensor(content)
    return torch.empty(0) if tensor is None else tensor.clone()


def are_equal(one: Tensor, other: Tensor) -> bool:
    """Whether two activations have the same shape and numbers, NaN included; not if there are none."""
    return one.shape == other.shape != (0,) and torch.equal(one.nan_to_num(), other.nan_to_num())


def streams_of(subject: OwnNetwork, pixels: Tensor) -> tuple[list[Tensor], str]:
    """The input of the first block and the output of each; and the path of a norm that was given the last.

    Norms are modules with the word in the names of their classes, outside the blocks; "" is none. Raises
    InputError if the blocks do not run once, in order, or do not give finite numbers.
    """
    inside = tuple(f"{path}." for path in subject.blocks)
    norms = [
        path
        for path, module in subject.net.named_modules()
        if "norm" in type(module).__name__.lower() and not f"{path}.".startswith(inside)
    ]
    calls = calls_of(subject.net, subject.images(pixels), (*subject.blocks, *norms))
    blocks = [call for call in calls if call.path in subject.blocks]
    if (ran := tuple(call.path for call in blocks)) != subject.blocks:
        wrong = next((path for path in subject.blocks if ran.count(path) != 1), "")
        order = f"blocks run in the order {', '.join(ran)}"
        how = f"block {wrong} runs {ran.count(wrong)} times" if wrong else order
        should = "each should run once, in the order of blocks="
        raise InputError(f"{subject.name}: {how} in one forward; {should}")
    streams = [blocks[0].given, *(call.gives for call in blocks)]
    for number, stream in enumerate(streams):
        if not stream.numel():
            does = "returns no tensor" if number else "is called without a tensor"
            raise InputError(f"block {blocks[max(0, number - 1)].path} of {subject.name} {does}")
        if not torch.isfinite(stream).all():
            raise InputError(f"{subject.name} gives numbers that are not finite at layer {number}")
    ends = (call for call in calls if call.path in norms and are_equal(call.given, streams[-1]))
    keeping = (call.path for call in ends if call.gives.shape == call.given.shape)
    return streams, min(keeping, key=len, default="")

"""A network of somebody's own as a backbone: `benchmark.from_module`."""

import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from benchmark import parsers
from benchmark.option import OneWord, Option, OptionalSwitch, OptionalWhole, OptionalWord, Switch, called_with

if TYPE_CHECKING:
    from zoo.load.module.network import NetworkCopy

LayoutChoice = Literal["tokens", "tokens-first", "maps", "cells"]


@dataclass(frozen=True)
class ModuleCall:
    """A network of somebody's own, and what is known of it."""

    net: Option[Any, Any] = Option(
        ..., "Any torch.nn.Module whose forward takes a batch of images.", parsers.anything
    )
    _: KW_ONLY
    name: OptionalWord = Option(None, "Name in tables.", parsers.text, usual="that of its class")
    blocks: Option[Any, Any] = Option(
        None,
        "Its residual blocks: a ModuleList or Sequential of it, a list of its modules, or a dotted path such "
        "as 'layers.*.blocks'.",
        parsers.anything,
        usual="the longest row of repeated modules, which is printed",
    )
    final_norm: Option[Any, Any] = Option(
        None,
        "Norm after the last block: a module of it or its dotted path; False for none.",
        parsers.anything,
        usual="the norm that is given what the last block gives",
    )
    image_size: OptionalWhole = Option(
        None,
        "Side of its square images in pixels.",
        parsers.whole,
        least=1,
        usual="its configuration's, or 224",
    )
    family: OneWord = Option("other", "Group in tables, any word.", parsers.text)
    supervision: OneWord = Option("unknown", "What it learned from, in a few words.", parsers.text)
    data: OneWord = Option("unknown", "What it was trained on.", parsers.text)
    licence: OneWord = Option("unknown", "Licence of its weights.", parsers.text)
    mean: Option[Sequence[float] | None, Any] = Option(
        None,
        "Mean of its input, red, green, blue, for pixels from 0 to 1.",
        parsers.anything,
        usual="its pretrained_cfg's, or ImageNet's",
    )
    std: Option[Sequence[float] | None, Any] = Option(
        None, "Standard deviation of the same.", parsers.anything, usual="as of mean"
    )
    layout: Option[LayoutChoice | None, LayoutChoice | None] = Option(
        None,
        "What its blocks pass on: [batch tokens dim], [tokens batch dim], [batch dim height width] or [batch "
        "height width dim].",
        parsers.choice,
        choices=get_args(LayoutChoice),
        usual="found by experiment",
    )
    prefix_tokens: OptionalWhole = Option(
        None, "Tokens before the patches.", parsers.whole, least=0, usual="found by experiment"
    )
    class_token: OptionalSwitch = Option(
        None,
        "Whether the first prefix token is a class token.",
        parsers.switch,
        usual="whether it has a cls_token, or else yes",
    )
    verbose: Switch = Option(True, "Print what was found.", parsers.switch)


@called_with(ModuleCall)
def from_module(call: ModuleCall) -> "NetworkCopy":
    """Make a backbone of any ``torch.nn.Module``, for ``run(backbones=[...])`` of this process.

    A few forwards of noise tell its blocks, what they pass on, its grids and its prefix tokens; what was
    found is printed. It is copied: nothing is changed, and what is trained later is another backbone.

    Returns:
        What runs take among names, as long as it is kept.

    Raises:
        zoo.errors.InputError: The network cannot be read so, or is not what was said; the sentence tells how.

    Example:
        >>> import benchmark
        >>> import torch
        >>> net = torch.nn.Sequential(
        ...     torch.nn.Conv2d(3, 16, kernel_size=8, stride=8),
        ...     *(torch.nn.Sequential(torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU()) for _ in "abc"),
        ... )
        >>> mine = benchmark.from_module(net, name="mine", blocks=list(net)[1:], image_size=64)
        mine: 3 blocks of net..., 0 prefix tokens + 8x8 grid of patch 8, 16 channels, no final norm
          blocks as told; they pass on feature maps [batch dim height width]
          images of 64 px (as told); mean (0.485, 0.456, 0.406) and std ... (assumed: ImageNet's)
          no norm was given what the last block gives; final_norm= names one
        >>> found = benchmark.run([mine, "mini-dino"], "knn", images="photos", floor=False, output="own")
        >>> sorted(set(found.frame["backbone"]))
        ['mine', 'mini-dino']
    """
    from zoo.load.module.hints import ModuleHints
    from zoo.load.module.network import given_network

    words = {name: getattr(call, name) for name in ModuleHints.__dataclass_fields__}
    network = given_network(call.net, ModuleHints(**words))
    if call.verbose:
        sys.stdout.write(f"{network}\n")
    return network

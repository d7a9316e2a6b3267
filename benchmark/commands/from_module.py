"""Any torch network as a backbone: `layerboard.from_module`."""

import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, Literal

from layerboard.benchmark.forms.option import Form, Option, Plain, called_with

if TYPE_CHECKING:
    from layerboard.zoo.own.module.network import NetworkCopy


class ModuleCall(Form, kw_only=False):
    """Options of `layerboard.from_module`: a network, and what is known about it."""

    net: Plain[Any] = Option(..., "Any torch.nn.Module whose forward takes a batch of images.")
    _: KW_ONLY
    name: Plain[str | None] = Option(None, "Name in tables.", usual="that of its class")
    blocks: Plain[Any] = Option(
        None,
        "Its residual blocks: a pattern of names in net.named_modules(), such as 'layers.*', a list of such "
        "names or of modules, or a ModuleList or Sequential.",
        usual="its one list of modules of one class that run in order, which is printed",
    )
    final_norm: Plain[Any] = Option(
        None,
        "Norm after the last block: one of its modules, or a dotted path; False for none.",
        usual="the norm that takes the output of the last block",
    )
    image_size: Plain[int | None] = Option(
        None, "Side of the square input images in pixels.", least=1, usual="its configuration's, or 224"
    )
    family: Plain[str] = Option("other", "Family in tables, any word.")
    supervision: Plain[str] = Option("unknown", "Its supervision, in a few words.")
    data: Plain[str] = Option("unknown", "What it was trained on.")
    licence: Plain[str] = Option("unknown", "Licence of its weights.")
    mean: Option[Sequence[float] | None, Any] = Option(
        None,
        "Mean for normalisation of pixels from 0 to 1: red, green, blue.",
        usual="its pretrained_cfg's, or ImageNet's",
    )
    std: Option[Sequence[float] | None, Any] = Option(
        None, "Standard deviation for the same normalisation.", usual="from the same source as the mean"
    )
    layout: Plain[Literal["tokens", "tokens-first", "maps", "cells"] | None] = Option(
        None,
        "What its blocks return: [batch tokens dim], [tokens batch dim], [batch dim height width] or [batch "
        "height width dim].",
        usual="read from their shapes",
    )
    prefix_tokens: Plain[int | None] = Option(
        None, "Number of tokens before the patch tokens.", least=0, usual="those beside the largest square"
    )
    class_token: Plain[bool | None] = Option(
        None, "Whether the first prefix token is a class token.", usual="yes, unless its cls_token is None"
    )
    verbose: Plain[bool] = Option(True, "Print what was found.")


@called_with(ModuleCall)
def from_module(call: ModuleCall) -> "NetworkCopy":
    """Make a backbone of any ``torch.nn.Module``, for ``run(backbones=[...])`` in this process.

    Its blocks are obvious if one ModuleList or Sequential holds modules of one class that run in order; else
    an error names candidates for ``blocks``. What they return, grids and prefix tokens are read from the
    shapes of a forward pass, and printed. The network is copied and never changed; after further training, it
    is another backbone. Keep a reference to the result for as long as runs use it; they accept it beside
    names.

    Example:
        >>> import layerboard
        >>> import torch
        >>> net = torch.nn.Sequential(
        ...     torch.nn.Conv2d(3, 16, kernel_size=8, stride=8),
        ...     *(torch.nn.Sequential(torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU()) for _ in "abc"),
        ... )
        >>> mine = layerboard.from_module(net, name="mine", blocks=["1", "2", "3"], image_size=64)
        mine: 3 blocks of net..., 0 prefix tokens + 8x8 grid of patch 8, 16 channels, no final norm
          blocks as given; each returns feature maps [batch dim height width]
          images of 64 px (as given); mean (0.485, 0.456, 0.406) and std ... (assumed: ImageNet's)
          no norm takes the output of the last block; final_norm= names one
        >>> found = layerboard.run([mine, "mini-dino"], "knn", images="photos", floor=False, output="own")
        >>> sorted(set(found.frame["backbone"]))
        ['mine', 'mini-dino']
    """
    from layerboard.zoo.own.module.network import given_network
    from layerboard.zoo.own.module.options import ModuleOptions

    words = {name: getattr(call, name) for name in ModuleOptions.__dataclass_fields__}
    network = given_network(call.net, ModuleOptions(**words))
    if call.verbose:
        sys.stdout.write(f"{network}\n")
    return network

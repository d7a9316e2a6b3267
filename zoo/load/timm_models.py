"""Networks built by timm, named ``timm:NAME`` or ``timm:NAME.TAG``, if timm is installed."""

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from layerboard.zoo.errors import InputError, shortened
from layerboard.zoo.libraries import optional
from layerboard.zoo.load.hub import quiet
from layerboard.zoo.load.module.hints import ModuleHints
from layerboard.zoo.load.module.network import Examined, examine

MARK = "timm:"  # prefix of the names of timm's networks
_OPTION = re.compile(r"\b[a-z_]+=")  # of `layerboard.from_module`, as an error names it
# Message of torch about a tensor of another shape.
_MISFIT = re.compile(r"size mismatch for (\S+): .*?Size\((\[.*?\])\).*?Size\((\[.*?\])\)")


@lru_cache(maxsize=64)
def timm_network(text: str) -> Examined:
    """The findings about a network of timm, ``timm:NAME``, ``timm:NAME.TAG`` or ``timm:NAME@TAG``.

    It is built without weights, and tried. Mean, std and size are those of its ``pretrained_cfg``; its
    repository is the Hub repository of its weights, "" if there is none.
    """
    net = build_timm(text)
    settings = vars(net).get("pretrained_cfg") or {}
    kind = str(settings.get("architecture") or _name(text)).partition("_")[0]
    module = type(net).__module__
    if module.startswith(
        "timm.models."
    ):  # the first word may be another, such as tf of tf_efficientnet_lite0
        kind = module.removeprefix("timm.models.").replace("vision_transformer", "vit")
    licence = str(settings.get("license") or "unknown")
    supervision = f"timm tag {tag}" if (tag := settings.get("tag")) else "unknown"
    try:
        examined = examine(net, ModuleHints(name=text, family=kind, supervision=supervision, licence=licence))
    except InputError as error:
        made = f"timm.create_model({_name(text)!r}, pretrained=True)"
        where = f", to layerboard.from_module({made}, ...), since {MARK} takes no options"
        raise InputError(f"{text}: {error}{where if _OPTION.search(str(error)) else ''}") from error
    spec = replace(
        examined.spec,
        checkpoint="timm",
        repository=str(settings.get("hf_hub_id") or "") if not settings.get("hf_hub_filename") else "",
        original=str(settings.get("url") or settings.get("hf_hub_id") or "its authors' page"),
        paper=f"timm {settings.get('tag') or 'without tag'}",
    )
    return replace(examined, spec=spec)


def build_timm(text: str, file: Path | None = None) -> nn.Module:
    """The frozen network, with the weights in a file, which timm reads, or random ones for None.

    The state of torch's generator is kept. Raises InputError if there is no such network, or if the weights
    do not fit.
    """
    timm = optional("timm", "names timm:... need timm; install it with: pip install 'layerboard[timm]'")
    name = _name(text)
    if not timm.is_model(name.partition(".")[0]):
        close = timm.list_models(f"*{name.partition('.')[0]}*")[:3]
        guess = f"did you mean {' or '.join(close)}?" if close else "timm.list_models() names all."
        raise InputError(f"timm has no network {name!r}; {guess}")
    options: dict[str, Any] = {"pretrained": file is not None}
    if file is not None:
        options["pretrained_cfg_overlay"] = {"file": str(file)}
    with torch.random.fork_rng(devices=[]), quiet():
        try:
            try:  # with support for any image size, if it has that option
                made: nn.Module = timm.create_model(name, dynamic_img_size=True, **options)
            except TypeError:
                made = timm.create_model(name, **options)
        except Exception as error:
            weights = "" if file is None else f" with the weights {file}"
            raise InputError(f"{text} cannot be built{weights}: {_reason(error)}") from error
    return made.requires_grad_(False).train(False)


def _reason(error: Exception) -> str:
    """A short form of an error: for weights of another size a tensor, its shape, and the network's."""
    text = str(error).strip()
    if shapes := _MISFIT.search(text):
        return f"{shapes[1]} is {shapes[2]}, not {shapes[3]}; give the file of that network"
    first, _, rest = text.partition("\n")
    return shortened(f"{first} {rest.strip()}" if first.endswith(":") else first)


def _name(text: str) -> str:
    return text.removeprefix(MARK).replace("@", ".")

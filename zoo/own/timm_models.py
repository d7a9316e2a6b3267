"""Networks built by timm, named ``timm:NAME`` or ``timm:NAME.TAG``, if timm is installed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from layerboard.zoo.entries.architecture import HEADS
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.features.hooked import HookedBackbone, Network
from layerboard.zoo.features.pass_context import pass_context
from layerboard.zoo.features.weights import are_zero
from layerboard.zoo.libraries import optional
from layerboard.zoo.load.checkpoint import Checkpoint, read_weights
from layerboard.zoo.load.files import FileLoader
from layerboard.zoo.load.hub import is_cached, quiet
from layerboard.zoo.load.networks import Names, choose_network, networks_of
from layerboard.zoo.load.renaming import Tensors, needed
from layerboard.zoo.online import hub_answers
from layerboard.zoo.own.module.network import CPU, Examined, examine
from layerboard.zoo.own.module.options import ModuleOptions
from layerboard.zoo.own.module.probe import require_own_features
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.spec.origin import TIMM

NEEDS_TIMM = "names timm:... need timm; install it with: pip install 'layerboard[timm]'"
_OPTION = re.compile(r"\b[a-z_]+=")  # of `layerboard.from_module`, as an error names it


class TimmLoader(FileLoader):
    """Loader of networks that timm builds, from files of weights that it reads."""

    def find(self, text: str, cache_dir: Path | None) -> BackboneSpec:
        return timm_network(text).spec

    def describe(self, spec: BackboneSpec, cache_dir: Path | None) -> str:
        return "\n".join(filter(None, (*timm_network(spec.entry).lines, self.choice(spec))))

    def network(self, spec: BackboneSpec, checkpoint: Checkpoint) -> Network:
        return timm_network(spec.entry).network(load_timm(spec, checkpoint))

    def require_fit(self, spec: BackboneSpec, checkpoint: Checkpoint) -> None:
        """Nothing is read before timm has built the network."""

    def layouts(self, spec: BackboneSpec) -> tuple[Names, ...]:
        return (_anchor(*_own_tensors(spec.entry)),)


def unavailable(texts: Sequence[str], cache_dir: Path | None) -> list[str]:
    """Those of some networks whose weights are on no disk, if the Hub cannot be reached; none is built."""
    timm = optional("timm", NEEDS_TIMM)
    configs = {text: timm.get_pretrained_cfg(_name(text), allow_unregistered=True) for text in texts}
    named = {text: each.hf_hub_id for text, each in configs.items() if each and not each.hf_hub_filename}
    absent = [
        text for text, repository in named.items() if repository and not is_cached(repository, cache_dir)
    ]
    return absent if absent and not hub_answers() else []


@lru_cache(maxsize=64)
def timm_network(text: str) -> Examined:
    """The findings about a network of timm, ``timm:NAME``, ``timm:NAME.TAG`` or ``timm:NAME@TAG``.

    It is built without weights, and run. Mean, std and size are those of its ``pretrained_cfg``; its
    repository is the Hub repository of its weights, "" if there is none.
    """
    net = build_timm(text)
    settings = vars(net).get("pretrained_cfg") or {}
    # the first word of a name may be another, such as tf of tf_efficientnet_lite0
    kind = type(net).__module__.rpartition(".")[2].replace("vision_transformer", "vit")
    licence = str(settings.get("license") or "unknown")
    supervision = f"timm tag {tag}" if (tag := settings.get("tag")) else "unknown"
    options = ModuleOptions(name=text, family=kind, supervision=supervision, licence=licence)
    try:
        examined = examine(net, options)
    except InputError as error:
        made = f"timm.create_model({_name(text)!r}, pretrained=True)"
        where = f", to layerboard.from_module({made}, ...), since {TIMM.mark} takes no options"
        raise InputError(f"{text}: {error}{where if _OPTION.search(str(error)) else ''}") from error
    require_own_features(HookedBackbone(examined.spec, examined.network(net), BackboneIdentity("", ""), CPU))
    spec = replace(
        examined.spec,
        origin=TIMM,
        network="average",  # as timm itself loads a training's file
        repository=str(settings.get("hf_hub_id") or "") if not settings.get("hf_hub_filename") else "",
        original=str(settings.get("url") or settings.get("hf_hub_id") or "its authors' page"),
        paper=f"timm {settings.get('tag') or 'without tag'}",
    )
    return replace(examined, spec=spec)


@pass_context()
def build_timm(text: str, file: Path | None = None, tensors: Tensors | None = None) -> nn.Module:
    """The frozen network, with the weights in a file, which timm reads, or random ones for None.

    ``tensors`` replace the content of the file. The state of torch's generator is kept. Raises InputError if
    there is no such network, or if the weights do not fit.
    """
    timm = optional("timm", NEEDS_TIMM)
    name = _name(text)
    if not timm.is_model(name.partition(".")[0]):
        close = timm.list_models(f"*{name.partition('.')[0]}*")[:3]
        guess = f"did you mean {' or '.join(close)}?" if close else "timm.list_models() names all."
        raise InputError(f"timm has no network {name!r}; {guess}")
    options: dict[str, Any] = {"pretrained": file is not None}
    if file is not None:
        source = {"file": str(file)} if tensors is None else {"state_dict": dict(tensors)}
        options["pretrained_cfg_overlay"] = source
    with torch.random.fork_rng(devices=[]), quiet():
        try:
            try:  # with support for any image size, if it has that option
                made: nn.Module = timm.create_model(name, dynamic_img_size=True, **options)
            except TypeError:
                made = timm.create_model(name, **options)
        except Exception as error:
            weights = "" if file is None else f" with the weights {file}, which may be another network's"
            # of weights that do not fit, the first line of torch's message does not say which ones
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"{text} cannot be built{weights}: {reason}") from error
    return made.requires_grad_(False).train(False)


def load_timm(spec: BackboneSpec, checkpoint: Checkpoint) -> nn.Module:
    """The frozen network with the weights of a file; raises InputError if they do not fit.

    No feature depends on its classifier: one of other classes, or none, is replaced by a random one.
    """
    (file, *_) = checkpoint.weights
    if file.suffix == ".npz":  # of Google, which timm converts
        return build_timm(spec.entry, file)
    own, heads = _own_tensors(spec.entry)
    content = read_weights((file,))
    networks = networks_of(content, [_anchor(own, heads)])
    if not networks:  # under the names of its authors, which timm converts
        return build_timm(spec.entry, file)
    given = choose_network(networks, spec, checkpoint.part).tensors
    unknown = [name for name in given if name not in own]
    used = [name for name in given if name in own and name not in heads]
    tensors = {name: given[name] for name in (*used, *needed(unknown, (HEADS,)))} | heads
    as_it_is = tensors.keys() == content.keys() and all(given[n].shape == t.shape for n, t in heads.items())
    if are_zero(tensors[name] for name in used):
        raise InputError(f"{spec.name}: all weights in {file} are zero; give a trained network's.")
    return build_timm(spec.entry, file, None if as_it_is else tensors)


def _own_tensors(text: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The tensors of the network without weights, and those of them that only its classifier has."""
    net: Any = build_timm(text)
    own = net.state_dict()
    reset: Any = getattr(net, "reset_classifier", None)
    if callable(reset):
        reset(0)
    body = net.state_dict()
    return own, {name: tensor for name, tensor in own.items() if name not in body}


def _anchor(own: Mapping[str, Tensor], heads: Mapping[str, Tensor]) -> Names:
    body = [name for name, tensor in own.items() if name not in heads and tensor.is_floating_point()]
    return body[0], body[-1]


def _name(text: str) -> str:
    return text.removeprefix(TIMM.mark).replace("@", ".")

"""The networks that a file of weights holds, and the choice of one of them.

A training may keep a network and a slow average of it (a teacher, a momentum encoder, an EMA) in one file,
each below dictionaries and prefixes of its own. A network is found by tensors that every known layout begins
with; what stands before their names is its label, such as ``state_dict.momentum_backbone``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.renaming import Tensors
from layerboard.zoo.references import PART
from layerboard.zoo.spec import BackboneSpec

ROOT = "."  # label of a network whose names have nothing before them
_DEEPEST = 8  # maximum nesting of dictionaries that are opened: a file may nest them without end

Names = tuple[str, ...]  # of tensors that a layout has, outside its heads
# Tensors of each layout: the first one's name, less itself, is the prefix of a network that has the others.
LAYOUTS: tuple[Names, ...] = (
    ("patch_embed.proj.weight",),  # timm's Vision Transformer, BEiT, DINOv2
    ("encoder.blocks.0.residual1.norm.weight",),  # CAPI
    ("conv1.weight", "layer1.0.conv1.weight"),  # torchvision's ResNet
    ("conv1.weight", "transformer.resblocks.0.ln_1.weight"),  # OpenAI's CLIP, the Perception Encoder
)
# Blocks that a sharded training keeps in chunks, as DINOv2's and Franca's do; they keep their numbers.
_CHUNKED = re.compile(r"^blocks\.\d+\.(?=\d+\.)")
# Modules that torch puts around a network or any part of it.
_WRAPPED = re.compile(
    r"(?:^|(?<=\.))(?:_orig_mod|_forward_module|_fsdp_wrapped_module|_checkpoint_wrapped_module)\."
)
# Words of labels: of an average, of the network whose average it is, and of either.
_AVERAGED = frozenset(
    (
        *("ema", "momentum", "teacher", "target", "average", "averaged", "averaging", "avg", "mean"),
        *("swa", "shadow", "slow", "polyak", "key", "k"),
    )
)
_TRAINED = frozenset(("student", "online", "base", "current", "query", "q"))
_SPOKEN = frozenset(("ema", "momentum", "teacher", "student", "online"))  # never names of a module
_PLAIN = frozenset(
    (
        *("state", "dict", "model", "weights", "module", "backbone", "net", "network", "encoder", "visual"),
        *("checkpoint", "params", "trunk", "callbacks", "vit", "moving", "exponential"),
    )
)
# Prefixes of a training, which stand before every name in a file of transformers.
_OF_TRANSFORMERS = re.compile(r"(^|\.)(embeddings|embedder)\.|(^|\.)encoder\.(layer|layers|stages)\.")
_OF_TRAINING = {"module", "model", "net", "network", "backbone", "encoder", "trunk", "state_dict"}


@dataclass(frozen=True, slots=True)
class FoundNetwork:
    """One network of a file: its label, and its tensors under the names of its own code."""

    label: str
    tensors: dict[str, Tensor]

    @property
    def words(self) -> frozenset[str]:
        """The words of its label, in lower case."""
        return _words(self.label)

    @property
    def strange(self) -> frozenset[str]:
        """Words of its label that are no known ones."""
        return self.words - _PLAIN - _AVERAGED - _TRAINED

    @property
    def is_average(self) -> bool:
        """Whether its label is that of an average of another network."""
        return bool(self.words & _AVERAGED)

    @property
    def is_student(self) -> bool:
        """Whether its label is that of a network that learns from an average of itself."""
        return "student" in self.words


def networks_of(content: Mapping[str, object], layouts: Sequence[Names] = LAYOUTS) -> list[FoundNetwork]:
    """Every network of these layouts in the content of a file, in the order of labels."""
    networks: dict[str, dict[str, Tensor]] = {}
    for above, tensors in _dictionaries(content):
        prefixes = {prefix for name in tensors for prefix in _prefixes(name, tensors, layouts)}
        for prefix in prefixes:
            others = tuple(each for each in prefixes if each != prefix and each.startswith(prefix))
            own = (name for name in tensors if name.startswith(prefix) and not name.startswith(others))
            label = ".".join(filter(None, [above, prefix.removesuffix(".")])) or ROOT
            networks[label] = {name.removeprefix(prefix): tensors[name] for name in own}
    return [FoundNetwork(label, networks[label]) for label in sorted(networks)]


def _dictionaries(content: Mapping[str, object]) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """The tensors of each dictionary in a file, with the keys above it, joined by dots."""
    seen: set[int] = set()  # dictionaries may hold one another
    level: list[tuple[str, Mapping[str, object]]] = [("", content)]
    for _ in range(_DEEPEST):
        deeper: list[tuple[str, Mapping[str, object]]] = []
        for above, values in level:
            if id(values) in seen:
                continue
            seen.add(id(values))
            named = {_WRAPPED.sub("", str(key)): value for key, value in values.items()}
            yield above, {key: value for key, value in named.items() if isinstance(value, Tensor)}
            inner = ((key, value) for key, value in named.items() if isinstance(value, Mapping))
            deeper += ((f"{above}.{key}".removeprefix("."), value) for key, value in inner)
        level = deeper


def _prefixes(name: str, tensors: Tensors, layouts: Sequence[Names]) -> Iterator[str]:
    for first, *others in layouts:
        prefix = name.removesuffix(first)
        is_prefix = prefix != name and (not prefix or prefix.endswith("."))
        if is_prefix and all(f"{prefix}{other}" in tensors for other in others):
            yield prefix


def unwrap(content: Mapping[str, object], spec: BackboneSpec, label: str = "") -> dict[str, Tensor]:
    """Tensors of the backbone in the content of a file, under the names of its own code.

    A file may keep them inside dictionaries, below prefixes and beside other networks; `choose_network` says
    which is taken. Without any network of a known layout, all tensors of the dictionary with most of them.
    """
    networks = networks_of(content)
    if not networks and not label:
        every = (tensors for _, tensors in _dictionaries(content))
        return without_prefix(max(every, key=len, default={}))
    tensors = choose_network(networks, spec, label).tensors
    return {_CHUNKED.sub("blocks.", name): tensor for name, tensor in tensors.items()}


def choose_network(networks: list[FoundNetwork], spec: BackboneSpec, label: str = "") -> FoundNetwork:
    """The network with a label, or else the one whose features the entry means.

    That is an average, if the entry says so or if it is the teacher of a student, and otherwise the network
    that was trained itself. Raises InputError, with the labels in the file, if this is not one network.
    """
    if label:
        fit = [each for each in networks if each.label == label] or [
            each for each in networks if f".{label}." in f".{each.label}."
        ]
        if len(fit) != 1:
            file = replace(spec, repository=spec.repository.removesuffix(f"{PART}{label}"))
            raise InputError(
                f"{spec.name}: expected one network called {label!r} in {file.repository}, found "
                f"{len(fit)}; name one: {_choices(file, networks)}."
            )
        return fit[0]
    fit = _meant(networks, spec)
    if any(not _are_equal(fit[0], other) for other in fit[1:]):
        raise InputError(
            f"{spec.name}: {spec.repository} holds {len(fit)} networks that may be meant; name one: "
            f"{_choices(spec, networks)}."
        )
    network = fit[0]
    if len(networks) == 1:
        _require_meant(network, spec)
    if network.strange:
        raise InputError(
            f"{spec.name}: the tensors of {spec.repository} have names of a known layout after "
            f"'{network.label}.', which no known training puts there; if this network is meant, give "
            f"{_choices(spec, [network])}, which takes it off."
        )
    return network


def _meant(networks: list[FoundNetwork], spec: BackboneSpec) -> list[FoundNetwork]:
    averages = [each for each in networks if each.is_average]
    trained = [each for each in networks if not each.is_average]
    are_distilled = any(each.is_student for each in trained)
    wants_average = spec.network == "average" or (not spec.network and are_distilled)
    side = (averages or trained) if wants_average or not trained else trained
    return [each for each in side if not each.strange] or side


def _are_equal(one: FoundNetwork, other: FoundNetwork) -> bool:
    return one.tensors.keys() == other.tensors.keys() and all(
        torch.equal(tensor, other.tensors[name]) for name, tensor in one.tensors.items()
    )


def _require_meant(network: FoundNetwork, spec: BackboneSpec) -> None:
    """Raise InputError for the only network of a file if it is not the one whose features are meant."""
    if network.is_student:
        wrong = "a student without its teacher, whose features are meant"
    elif network.is_average and spec.network == "trained":
        wrong = "the momentum encoder only; the features meant are those of the query encoder"
    else:
        return
    raise InputError(
        f"{spec.name}: {spec.repository} holds {wrong}; give that network's file, or, to have this one, "
        f"--weights {spec.entry}={spec.repository}{PART}{network.label}."
    )


def choice_in_words(networks: list[FoundNetwork], spec: BackboneSpec) -> str:
    """The network that `choose_network` takes of several, and how to have another; "" for one alone."""
    if len(networks) < 2:
        return ""
    taken = choose_network(networks, spec)
    others = [each for each in networks if each is not taken]
    why = "the average, whose features are meant" if taken.is_average else "the one that was trained itself"
    return (
        f"{spec.name}: {spec.repository} holds {len(networks)} networks; {taken.label} is taken, {why}; "
        f"for another give {_choices(spec, others)}"
    )


def _choices(spec: BackboneSpec, networks: Iterable[FoundNetwork]) -> str:
    options = [f"--weights {spec.entry}={spec.repository}{PART}{each.label}" for each in networks]
    return " or ".join(options) or "none of a known layout"


def without_prefix(tensors: Tensors) -> dict[str, Tensor]:
    """Tensors under names without what a training has put before all of them.

    Of a network in names of transformers, heads may stand beside that prefix, and are left out.
    """
    names = {_WRAPPED.sub("", name): tensor for name, tensor in tensors.items()}
    while True:
        below: dict[str, dict[str, Tensor]] = {}
        for name, tensor in names.items():
            first, _, rest = name.partition(".")
            below.setdefault(first, {})[rest] = tensor
        holding = [
            first for first in below if has_names_of_transformers(f"{first}.{rest}" for rest in below[first])
        ]
        chosen = holding if holding and has_names_of_transformers(below[holding[0]]) else [*below]
        if len(chosen) != 1 or chosen[0] not in _OF_TRAINING:
            return names
        names = below[chosen[0]]


def of_transformers(content: Mapping[str, object], spec: BackboneSpec, label: str) -> dict[str, Tensor]:
    """Tensors of the backbone in the content of a file that transformers describes, as `unwrap` does."""
    networks: list[FoundNetwork] = []
    for above, tensors in _dictionaries(content):
        named = without_prefix(tensors)
        parts: dict[str, dict[str, Tensor]] = {}  # by the first word of their names, if it is of a label
        for name, tensor in named.items():
            first, _, below = name.partition(".")
            is_label = bool(_words(first) & _SPOKEN)
            parts.setdefault(first if is_label else "", {})[below if is_label else name] = tensor
        networks += [
            FoundNetwork(".".join(filter(None, [above, first])) or ROOT, part)
            for first in sorted(parts)
            if has_names_of_transformers(part := without_prefix(parts[first]) if first else parts[first])
        ]
    if not networks and not label:
        return dict(next(_dictionaries(content))[1])
    return choose_network(networks, spec, label).tensors


def has_names_of_transformers(tensors: Iterable[str]) -> bool:
    """Whether names of tensors are those of transformers, so that they need its ``config.json``."""
    return any(_OF_TRANSFORMERS.search(name) for name in tensors)


def _words(label: str) -> frozenset[str]:
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", label)
    return frozenset(word.lower() for word in words)

"""A user's own network as a backbone of this process: what a forward pass shows of it, and its copy."""

import copy
import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from layerboard.zoo.entries.architecture import Layout, Sublayers
from layerboard.zoo.errors import InputError, counted, ensure, shortened, some
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.hooked import HookedBackbone, Network
from layerboard.zoo.features.layers import taps_in_words
from layerboard.zoo.features.pass_context import pass_context
from layerboard.zoo.features.taps import FUSED
from layerboard.zoo.features.weights import are_zero
from layerboard.zoo.load.backbone import OriginLoader, identity_of
from layerboard.zoo.load.described import normalisation_of
from layerboard.zoo.own.module.blocks import Paths, find_blocks, named_blocks, path_pattern
from layerboard.zoo.own.module.options import (
    ModuleOptions,
    OwnNetwork,
    faults,
    has_class_token,
    stages_of,
    with_images,
)
from layerboard.zoo.own.module.parts import find_attention, find_parts
from layerboard.zoo.own.module.probe import probe, require_own_features, tensor_bytes
from layerboard.zoo.own.module.reading import LAYOUT_WORDS, Structure, structure_of
from layerboard.zoo.spec import BackboneSpec, Stage
from layerboard.zoo.spec.origin import MODULE
from layerboard.zoo.view.geometry import nearest_multiple

CPU = torch.device("cpu")
USUAL_STRIDE = 32  # pixels per cell of the coarsest grid of most networks with several grids


@dataclass(frozen=True, slots=True)
class Examined:
    """What is known of a network, also in words; its spec does not say where it comes from."""

    spec: BackboneSpec
    blocks: Paths
    final_norm: str  # its path; "" for none
    parts: Sublayers | None  # places in each block, if they are known
    layouts: tuple[Layout, ...]
    lines: tuple[str, ...]

    def network(self, net: nn.Module) -> Network:
        """A network of this kind with the places to hook."""
        norm = net.get_submodule(self.final_norm) if self.final_norm else None
        blocks = tuple(map(net.get_submodule, self.blocks))
        return Network(net, blocks, norm, self.layouts, parts=self.parts)


class NetworkCopy:
    """A copy of a user's network, and the findings about it, in words as ``lines``.

    It exists in this process only, where `ModuleLoader` finds it by its ``reference`` as long as this object
    lives. Later changes of the original network do not affect it.
    """

    def __init__(self, net: nn.Module, examined: Examined) -> None:
        self._net, self._examined = net, examined
        self._probes: dict[BackboneSpec, bytes] = {}
        self.spec, self.lines = examined.spec, examined.lines
        self.revision = self._digest()
        self.reference = f"{MODULE.mark}{examined.spec.name}#{self.revision.partition(':')[2]}"
        self.spec = replace(examined.spec, repository=self.reference, origin=MODULE)
        self.name = self.spec.name
        _COPIES[self.reference] = self

    def identity(self, spec: BackboneSpec) -> BackboneIdentity:
        """The identity of the network in the number format and at the input size of a spec."""
        identity = identity_of(spec, self.revision)
        if (spec.dtype, spec.input_size) == (self.spec.dtype, self.spec.input_size):
            return identity
        if spec not in self._probes:
            self._probes[spec] = self._computed(spec)
        combined = hashlib.sha256(identity.fingerprint.encode() + self._probes[spec])
        return replace(identity, fingerprint=combined.hexdigest()[:20])

    def _digest(self) -> str:
        """``sha256:`` and 16 digits of weights, of where blocks are, and of the features of fixed images.

        Raises InputError if features depend on chance, or on the other images of a batch.
        """

        def measure(backbone: HookedBackbone) -> bytes:
            require_own_features(backbone)
            return probe(backbone)

        examined, combined = self._examined, hashlib.sha256(self._computed(self.spec, measure))
        combined.update(repr((examined.blocks, examined.final_norm, examined.layouts)).encode())
        for name, tensor in (*self._net.named_parameters(), *self._net.named_buffers()):
            combined.update(name.encode() + tensor_bytes(tensor))
        return f"sha256:{combined.hexdigest()[:16]}"

    def _computed(self, spec: BackboneSpec, measure: Callable[[HookedBackbone], bytes] = probe) -> bytes:
        """What is measured of a copy, on the CPU if it runs there."""
        own = next((weight.device for weight in self._net.parameters()), CPU)
        for device in (CPU, own):
            backbone = HookedBackbone(spec, self.network(), BackboneIdentity("", ""), device)
            try:
                return measure(backbone)
            except (RuntimeError, NotImplementedError):  # of a device that it does not run on, or a format
                if device == own:
                    raise
        raise AssertionError

    def network(self) -> Network:
        """A copy of the copy: a run may need another dtype or device."""
        return self._examined.network(copy.deepcopy(self._net))

    def __deepcopy__(self, memo: object) -> "NetworkCopy":
        return self  # it never changes, and is found by its reference

    def __repr__(self) -> str:
        return "\n".join(self.lines)


_COPIES: WeakValueDictionary[str, NetworkCopy] = WeakValueDictionary()


class ModuleLoader(OriginLoader):
    """Loader of the networks of this process; what is known of one was said when it was made."""

    def given(self, reference: str) -> NetworkCopy:
        """The network of that reference; raises InputError if there is none, or no longer."""
        if network := _COPIES.get(reference):
            return network
        name = reference.removeprefix(MODULE.mark).partition("#")[0]
        raise InputError(
            f"the network {name} is not in this process; keep what from_module gave as long as it is run, "
            "and run it in the process that made it"
        )

    def find(self, text: str, cache_dir: Path | None) -> BackboneSpec:
        return self.given(text).spec

    def identify(self, spec: BackboneSpec, cache_dir: Path) -> BackboneIdentity:
        return self.given(spec.repository).identity(spec)

    def load(self, spec: BackboneSpec, device: torch.device, cache_dir: Path) -> Backbone:
        network = self.given(spec.repository).network()
        return HookedBackbone(spec, network, self.identify(spec, cache_dir), device)


class _Detached(TorchFunctionMode):
    """Context in which copies of activations that a network keeps have no history, which cannot be copied."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        if func is Tensor.__deepcopy__ and not args[0].is_leaf:
            tensor, memo = args
            return memo.setdefault(id(tensor), tensor.detach().clone())
        return func(*args, **(kwargs or {}))


def bare(net: nn.Module) -> nn.Module:
    """A network without what torch puts around it: DataParallel and its kind, and torch.compile."""
    while isinstance(inner := getattr(net, "module", None), nn.Module) and "Parallel" in type(net).__name__:
        net = inner
    inside: nn.Module = getattr(net, "_orig_mod", net)
    return inside


@pass_context()
def given_network(net: nn.Module, options: ModuleOptions) -> NetworkCopy:
    """A backbone made of a copy of a network, after forward passes that show what its blocks return.

    Raises InputError if it cannot be copied or run, does not match the options, or is no backbone.
    """
    ensure(isinstance(net, nn.Module), f"a network should be a torch.nn.Module; found {shortened(net)}")
    net = bare(net)
    try:
        # copied together, so that blocks and norm given as modules are those of the copy
        with _Detached():
            copied, blocks, norm = copy.deepcopy((net, options.blocks, options.final_norm))
    except Exception as error:
        reason = f"cannot be copied ({type(error).__name__}: {error}); remove what it keeps of that kind"
        raise InputError(f"{type(net).__name__} {reason}") from error
    for module in copied.modules():
        if "_original_forward" in vars(module):  # accelerate replaces the method, bound to the original
            vars(module).pop("forward", None)
    copied.requires_grad_(False).train(False)
    tensors = dict((*copied.named_parameters(), *copied.named_buffers()))
    empty = [name for name, tensor in tensors.items() if tensor.is_meta]
    ensure(not empty, f"{some(empty)} of the {type(net).__name__} are on the meta device; load weights first")
    if are_zero(copied.state_dict().values()):
        raise InputError(f"all weights of the {type(net).__name__} are zero; load trained ones into it")
    examined = examine(copied, replace(options, blocks=blocks, final_norm=norm))
    for fault in faults(examined.spec):
        raise InputError(f"the network {examined.spec.name!r} {fault}")
    return NetworkCopy(copied, examined)


@pass_context()
def examine(net: nn.Module, options: ModuleOptions) -> Examined:
    """Examine a network in evaluation mode."""
    structure = _structure(with_images(net, options), options)
    subject, prefix = structure.subject, structure.readings[1].prefix
    of_tokens = not any(reading.is_map for reading in structure.readings)
    has_cls, reason = has_class_token(net, prefix, options) if of_tokens else (False, "")
    attends, heads = find_attention(structure)
    parts, taps = find_parts(structure, attends)
    rows = groupby((reading.width, subject.size // reading.side) for reading in structure.readings[1:])
    stages = tuple(Stage(len(list(row)), width, stride) for (width, stride), row in rows)
    stem, stride = structure.readings[0], subject.size // structure.readings[0].side
    spec = BackboneSpec(
        name=options.name or subject.name,
        family=options.family,
        supervision=options.supervision,
        data=options.data,
        licence=options.licence,
        repository="",
        stages=stages,
        heads=heads or None,
        taps=taps or None,
        prefix_tokens=prefix,
        has_cls=has_cls,
        has_final=bool(structure.final_norm),
        stem_width=None if stem.width == stages[0].width else stem.width,
        stem_stride=None if stride == stages[0].stride else stride,
        input_size=subject.size,
        fixed_size=bool(structure.other_sizes),
        mean=subject.normalisation.mean,
        std=subject.normalisation.std,
        parameters=sum(weight.numel() for weight in net.parameters()),
    )
    layouts, norm = tuple(reading.layout for reading in structure.readings), structure.final_norm
    lines = [
        f"{spec.name}: {_headline(spec, structure)}",
        f"blocks {'found' if options.blocks is None else 'as given'}; each returns "
        + " then ".join(dict.fromkeys(LAYOUT_WORDS[layout] for layout in layouts)),
        f"images of {spec.input_size} px ({subject.size_source}); {normalisation_of(spec)} "
        f"({subject.normalisation_source})",
    ]
    left = (f"{counted(len(row), 'modules')} of {path_pattern(row)}" for row in subject.others)
    lines += [f"not taken for blocks: {modules}" for modules in left]
    if prefix and reason:
        lines.append(f"the first prefix token is {'a' if has_cls else 'no'} class token ({reason})")
    if attends:
        how = f"recomputed from the call of {FUSED} in" if attends == FUSED else f"shown by {attends} of"
        lines.append(f"attention probabilities of {heads} heads, {how} each block")
    elif heads:
        which = f"attention of {counted(heads, 'heads')} in the last block"
        lines.append(f"{which}, not shown: not over all tokens of each")
    if taps:
        lines.append(f"taps inside each block: {taps_in_words(taps)}")
    if options.final_norm in (None, True) and not norm:
        lines.append("no norm takes the output of the last block; final_norm= names one")
    if structure.other_sizes:
        lines.append(f"images of other sizes: no, {structure.other_sizes}")
    said = (lines[0], *(f"  {line}" for line in lines[1:]))
    return Examined(spec, subject.blocks, norm, parts, layouts, said)


def _structure(subject: OwnNetwork, options: ModuleOptions) -> Structure:
    """The structure at the size that the network states, or else at the nearest one of whole cells."""
    net, size = subject.net, nearest_multiple(subject.size, USUAL_STRIDE)
    try:
        if options.blocks is None:
            blocks, others = find_blocks(net, subject.images(subject.draw()[None]), stages_of(net))
        else:
            blocks, others = named_blocks(net, options.blocks), []
        return structure_of(replace(subject, blocks=blocks, others=others), options)
    except InputError:
        if options.image_size is None and size != subject.size:
            source = f"{subject.size_source}, {subject.size}, in whole cells"
            with suppress(InputError):
                return _structure(replace(subject, size=size, size_source=source), options)
        raise  # of the size that the network states


def _headline(spec: BackboneSpec, structure: Structure) -> str:
    """The findings: blocks, tokens, grid, channels, norm."""

    def joined(words: Iterable[object]) -> str:
        return "/".join(map(str, dict.fromkeys(words)))

    grids = joined(f"{reading.side}x{reading.side}" for reading in structure.readings[1:])
    strides = joined(stage.stride for stage in spec.stages)
    widths = joined(stage.width for stage in spec.stages)
    blocks = f"{counted(spec.depth, 'blocks')} of {path_pattern(structure.subject.blocks)}"
    tokens = f"{counted(spec.prefix_tokens, 'prefix tokens')} + {grids} grid of patch {strides}"
    norm = f"final norm net.{structure.final_norm}" if structure.final_norm else "no final norm"
    return f"{blocks}, {tokens}, {widths} channels, {norm}"

"""A network of somebody's own as a backbone of this process."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

import torch
from torch import nn

from zoo.architecture import Layout
from zoo.errors import InputError, shortened
from zoo.features import BackboneIdentity
from zoo.features.hooked import HookedBackbone, Network
from zoo.load.module.blocks import Blocks, find_blocks, named_blocks, path_of
from zoo.load.module.digest import digest_of
from zoo.load.module.hints import Images, Told, has_class_token, images_of
from zoo.load.module.layouts import LAYOUT_WORDS
from zoo.load.module.streams import Subject
from zoo.load.module.trial import Trial, Wishes, try_out
from zoo.load.own import wrong_with
from zoo.spec import BackboneSpec

MARK = "given:"
"""Begins the names by which a run calls for networks of this process."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a trial told of a network: its spec, and where to look into it.

    Attributes:
        spec: All but where it is from.
        blocks: Paths of its blocks.
        final_norm: Path of its final norm; "" where it has none.
        layouts: Axes of layer 0 and of what each block passes on.
        lines: What was found, in words, a sentence a line.
    """

    spec: BackboneSpec
    blocks: tuple[str, ...]
    final_norm: str
    layouts: tuple[Layout, ...]
    lines: tuple[str, ...]

    def network(self, net: nn.Module) -> Network:
        """A network of this kind with the places to look into."""
        return Network(
            body=net,
            blocks=tuple(net.get_submodule(path) for path in self.blocks),
            final_norm=net.get_submodule(self.final_norm) if self.final_norm else None,
            layouts=self.layouts,
        )


class GivenNetwork:
    """A copy of somebody's network, and what was found out about it.

    It stands in this process only. What happens to the network that it was made of changes nothing here.

    Attributes:
        spec: What is known of it.
        lines: What was found, in words.
        reference: By which `given` finds it, as long as this object lives.
    """

    def __init__(self, net: nn.Module, found: Found) -> None:
        self._net, self._found = net, found
        self.revision = digest_of(net, found.blocks, found.final_norm, found.layouts)
        self.reference = f"{MARK}{found.spec.name}#{self.revision.partition(':')[2]}"
        self.spec = replace(found.spec, repository=self.reference, checkpoint="module")
        self.lines = found.lines
        _GIVEN[self.reference] = self

    def backbone(
        self, spec: BackboneSpec, identity: BackboneIdentity, device: torch.device, dtype: torch.dtype
    ) -> HookedBackbone:
        """The backbone, of a copy of the copy: a run may need it in another dtype, elsewhere."""
        network = self._found.network(copy.deepcopy(self._net))
        return HookedBackbone(spec, network, identity, device, dtype)

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.spec.name

    def __repr__(self) -> str:
        return "\n".join(self.lines)


_GIVEN: WeakValueDictionary[str, GivenNetwork] = WeakValueDictionary()


def given(reference: str) -> GivenNetwork:
    """The network of that reference; raises InputError where there is none, or no longer."""
    found = _GIVEN.get(reference)
    if found is None:
        name = reference.removeprefix(MARK).partition("#")[0]
        raise InputError(
            f"the network {name} is not in this process; keep what from_module gave as long as it is run, "
            "and run it in the process that made it"
        )
    return found


def given_network(net: nn.Module, told: Told) -> GivenNetwork:
    """A backbone of a copy of a network, after trial forwards that tell how to look into it.

    Raises:
        InputError: It cannot be copied or run, is not what is told of it, or is no backbone.
    """
    if not isinstance(net, nn.Module):
        raise InputError(f"a network should be a torch.nn.Module; found {shortened(net)}")
    net = getattr(net, "_orig_mod", net)  # as it was before torch.compile
    named = _named(net, told)  # paths: a copy has other modules
    try:
        copied = copy.deepcopy(net)
    except Exception as error:
        raise InputError(
            f"{type(net).__name__} cannot be copied ({type(error).__name__}: {error}); detach tensors that "
            "it keeps"
        ) from error
    copied.requires_grad_(False).train(False)
    found = examine(copied, told, *named)
    if wrong := wrong_with(found.spec):
        raise InputError(f"the network {found.spec.name!r} {wrong}")
    return GivenNetwork(copied, found)


def _named(net: nn.Module, told: Told) -> tuple[Blocks | None, str | None]:
    """Blocks and path of the final norm as far as they are told; "" for no norm."""
    blocks = None if told.blocks is None else named_blocks(net, told.blocks)
    norm = told.final_norm
    if norm is None or norm is True:
        return blocks, None
    if norm is False:
        return blocks, ""
    if isinstance(norm, str):
        path = norm.removeprefix("net.")
        if path not in dict(net.named_modules()):
            raise InputError(f"final_norm={norm!r} names no module of {type(net).__name__}")
        return blocks, path
    return blocks, path_of(net, norm, "final_norm")


def examine(net: nn.Module, told: Told, blocks: Blocks | None = None, final_norm: str | None = None) -> Found:
    """What a network is, by trial forwards; it is in evaluation mode.

    Args:
        net: The network.
        told: What is said of it.
        blocks: Its blocks; None to look for them.
        final_norm: Path of its final norm, "" for none; None to look for it.

    Raises:
        InputError: It is not what is told of it, or is no backbone.
    """
    images = images_of(net, told)
    try:
        found, trial = _tried(net, told, images, blocks, final_norm)
    except InputError as error:
        images = images.rounded() if told.image_size is None else images
        found, trial = _tried_again(net, told, images, (blocks, final_norm), error)
    has_cls, reason = has_class_token(net, trial.prefix, told)
    spec = _spec(net, told, images, trial, has_cls=has_cls and trial.of_tokens)
    told_what = {"blocks": blocks is not None, "norm": final_norm is not None}
    lines = (
        f"{spec.name}: {headline(spec, trial, found)}",
        *(f"  {line}" for line in details(spec, trial, images, reason, told_what)),
    )
    layouts = tuple(one.layout for one in trial.readings)
    return Found(spec, found.paths, trial.final_norm, layouts, lines)


def _tried(
    net: nn.Module, told: Told, images: Images, blocks: Blocks | None, final_norm: str | None
) -> tuple[Blocks, Trial]:
    """Blocks and what was found, with images of that size; raises InputError where they are no backbone's."""
    probe = Subject(net, (), images.size, images.normalisation)
    found = blocks or find_blocks(net, probe.images(probe.draw()[None]))
    subject = replace(probe, blocks=found.paths)
    return found, try_out(subject, final_norm, Wishes(told.layout, told.prefix_tokens))


def _tried_again(
    net: nn.Module, told: Told, images: Images, named: tuple[Blocks | None, str | None], error: InputError
) -> tuple[Blocks, Trial]:
    """The same at a size that was rounded; raises the first error where that does not help either."""
    if images == images_of(net, told):
        raise error
    try:
        return _tried(net, told, images, *named)
    except InputError:
        raise error from None


def _spec(net: nn.Module, told: Told, images: Images, trial: Trial, *, has_cls: bool) -> BackboneSpec:
    stages, stem = trial.stages, trial.readings[0]
    stride = trial.size // stem.side
    return BackboneSpec(
        name=told.name or type(net).__name__,
        family=told.family,
        supervision=told.supervision,
        data=told.data,
        licence=told.licence,
        repository="",
        stages=stages,
        heads=None,
        prefix_tokens=trial.prefix,
        has_cls=has_cls,
        has_final=bool(trial.final_norm),
        stem_width=None if stem.width == stages[0].width else stem.width,
        stem_stride=None if stride == stages[0].stride else stride,
        input_size=trial.size,
        fixed_size=bool(trial.other_sizes),
        mean=images.normalisation.mean,
        std=images.normalisation.std,
        parameters=sum(one.numel() for one in net.parameters()),
    )


def headline(spec: BackboneSpec, trial: Trial, blocks: Blocks) -> str:
    """The line that says what was found: blocks, tokens, grid, channels, norm."""

    def joined(word: Callable[[int], str], numbers: list[int]) -> str:
        return "/".join(word(number) for number in dict.fromkeys(numbers))

    grids = joined(lambda side: f"{side}x{side}", [one.side for one in trial.readings[1:]])
    strides = joined(str, [stage.stride for stage in spec.stages])
    widths = joined(str, [stage.width for stage in spec.stages])
    tokens = f"{spec.prefix_tokens} prefix {'token' if spec.prefix_tokens == 1 else 'tokens'}"
    norm = f"final norm net.{trial.final_norm}" if trial.final_norm else "no final norm"
    count = f"{spec.depth} {'block' if spec.depth == 1 else 'blocks'}"
    return f"{count} of {blocks.words}, {tokens} + {grids} grid of patch {strides}, {widths} channels, {norm}"


def details(
    spec: BackboneSpec, trial: Trial, images: Images, class_token: str, told: dict[str, bool]
) -> list[str]:
    """Where each fact is from, and what it means."""
    layouts = " then ".join(dict.fromkeys(LAYOUT_WORDS[one.layout] for one in trial.readings))
    mean, std = (", ".join(f"{value:.4g}" for value in one) for one in (spec.mean, spec.std))
    size, normalisation = images.source
    lines = [
        f"blocks {'as told' if told['blocks'] else 'found'}; they pass on {layouts}",
        f"images of {spec.input_size} px ({size}); mean ({mean}) and std ({std}) ({normalisation})",
    ]
    if trial.of_tokens and spec.prefix_tokens:
        what = "a class token" if spec.has_cls else "no class token"
        lines.append(f"the first prefix token is {what} ({class_token})")
    if not told["norm"] and not trial.final_norm:
        lines.append("no norm was given what the last block gives; final_norm= names one")
    if trial.other_sizes:
        lines.append(f"images of other sizes: none, {shortened(trial.other_sizes)}")
    return lines

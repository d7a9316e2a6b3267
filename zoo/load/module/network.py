"""A network of somebody's own as a backbone of this process: what trial forwards tell of it, and its copy."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from torch import nn

from zoo.architecture import Layout
from zoo.errors import InputError, shortened
from zoo.features.hooked import Network
from zoo.load.module.blocks import Paths, find_blocks, in_words, named_blocks, path_of
from zoo.load.module.digest import digest_of
from zoo.load.module.forward import TrialNetwork
from zoo.load.module.hints import InputImages, ModuleHints, has_class_token, images_of
from zoo.load.module.readings import LAYOUT_WORDS
from zoo.load.module.trial import Trial, try_out
from zoo.load.own import wrong_with
from zoo.spec import BackboneSpec

MARK = "given:"  # begins the names by which a run calls for networks of this process


@dataclass(frozen=True, slots=True)
class Examined:
    """What a trial told of a network: its spec but for where it is from, where to look into it; all in words.

    Blocks and final norm ("" for none) are paths; layouts are those of layer 0 and of each block.
    """

    spec: BackboneSpec
    blocks: Paths
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


class NetworkCopy:
    """A copy of somebody's network, and what was found out about it, in words as ``lines``.

    It stands in this process only, where `given` finds it by its ``reference`` as long as this object lives.
    What happens to the network that it was made of changes nothing here.
    """

    def __init__(self, net: nn.Module, examined: Examined) -> None:
        self._net, self._examined = net, examined
        self.revision = digest_of(net, examined.blocks, examined.final_norm, examined.layouts)
        self.reference = f"{MARK}{examined.spec.name}#{self.revision.partition(':')[2]}"
        self.spec = replace(examined.spec, repository=self.reference, checkpoint="module")
        self.lines = examined.lines
        _COPIES[self.reference] = self

    def network(self) -> Network:
        """A copy of the copy: a run may need it in another dtype, elsewhere."""
        return self._examined.network(copy.deepcopy(self._net))

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.spec.name

    def __repr__(self) -> str:
        return "\n".join(self.lines)


_COPIES: WeakValueDictionary[str, NetworkCopy] = WeakValueDictionary()


def given(reference: str) -> NetworkCopy:
    """The network of that reference; raises InputError where there is none, or no longer."""
    network = _COPIES.get(reference)
    if network is None:
        name = reference.removeprefix(MARK).partition("#")[0]
        raise InputError(
            f"the network {name} is not in this process; keep what from_module gave as long as it is run, "
            "and run it in the process that made it"
        )
    return network


def given_network(net: nn.Module, hints: ModuleHints) -> NetworkCopy:
    """A backbone of a copy of a network, after trial forwards that tell how to look into it.

    Raises:
        InputError: It cannot be copied or run, is not what is said of it, or is no backbone.
    """
    if not isinstance(net, nn.Module):
        raise InputError(f"a network should be a torch.nn.Module; found {shortened(net)}")
    net = getattr(net, "_orig_mod", net)  # as it was before torch.compile
    # paths, since a copy has other modules
    blocks = None if hints.blocks is None else named_blocks(net, hints.blocks)
    final_norm = _norm_path(net, hints)
    try:
        copied = copy.deepcopy(net)
    except Exception as error:
        raise InputError(
            f"{type(net).__name__} cannot be copied ({type(error).__name__}: {error}); detach tensors that "
            "it keeps"
        ) from error
    copied.requires_grad_(False).train(False)
    examined = examine(copied, hints, blocks, final_norm)
    if wrong := wrong_with(examined.spec):
        raise InputError(f"the network {examined.spec.name!r} {wrong}")
    return NetworkCopy(copied, examined)


def _norm_path(net: nn.Module, hints: ModuleHints) -> str | None:
    """Path of the final norm as far as it is told; "" for no norm, None to look for it."""
    norm = hints.final_norm
    if norm is None or norm is True:
        return None
    if norm is False:
        return ""
    if not isinstance(norm, str):
        return path_of(net, norm, "final_norm")
    path = norm.removeprefix("net.")
    if path not in dict(net.named_modules()):
        raise InputError(f"final_norm={norm!r} names no module of {type(net).__name__}")
    return path


def examine(
    net: nn.Module, hints: ModuleHints, blocks: Paths | None = None, final_norm: str | None = None
) -> Examined:
    """What a network in evaluation mode is, by trial forwards.

    Blocks are looked for if None, and so is the path of the final norm, "" for none. Raises InputError where
    the network is not what is said of it, or is no backbone.
    """
    images = images_of(net, hints)
    try:
        blocks_tried, trial = _try(net, hints, images, blocks, final_norm)
    except InputError as error:
        rounded = images.rounded()
        if hints.image_size is not None or rounded == images:
            raise
        images = rounded
        try:
            blocks_tried, trial = _try(net, hints, images, blocks, final_norm)
        except InputError:
            raise error from None  # of the size that the network says
    has_cls, reason = has_class_token(net, trial.prefix, hints)
    spec = _spec(net, hints, images, trial, has_cls=has_cls and trial.of_tokens)
    lines = [
        f"blocks {'found' if blocks is None else 'as told'}; they pass on "
        + " then ".join(dict.fromkeys(LAYOUT_WORDS[reading.layout] for reading in trial.readings)),
        *_input_lines(spec, images),
    ]
    if trial.of_tokens and spec.prefix_tokens:
        what = "a class token" if spec.has_cls else "no class token"
        lines.append(f"the first prefix token is {what} ({reason})")
    if final_norm is None and not trial.final_norm:
        lines.append("no norm was given what the last block gives; final_norm= names one")
    if trial.other_sizes:
        lines.append(f"images of other sizes: none, {shortened(trial.other_sizes)}")
    return Examined(
        spec,
        blocks_tried,
        trial.final_norm,
        tuple(reading.layout for reading in trial.readings),
        (f"{spec.name}: {_headline(spec, trial, blocks_tried)}", *(f"  {line}" for line in lines)),
    )


def _try(
    net: nn.Module, hints: ModuleHints, images: InputImages, blocks: Paths | None, final_norm: str | None
) -> tuple[Paths, Trial]:
    """Blocks and what was found, with images of that size; raises InputError where they are no backbone's."""
    probe = TrialNetwork(net, (), images.size, images.normalisation)
    paths = blocks or find_blocks(net, probe.images(probe.draw()[None]))
    return paths, try_out(replace(probe, blocks=paths), final_norm, hints)


def _spec(
    net: nn.Module, hints: ModuleHints, images: InputImages, trial: Trial, *, has_cls: bool
) -> BackboneSpec:
    stages, stem = trial.stages, trial.readings[0]
    stride = trial.size // stem.side
    return BackboneSpec(
        name=hints.name or type(net).__name__,
        family=hints.family,
        supervision=hints.supervision,
        data=hints.data,
        licence=hints.licence,
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
        parameters=sum(weight.numel() for weight in net.parameters()),
    )


def _headline(spec: BackboneSpec, trial: Trial, blocks: Paths) -> str:
    """What was found: blocks, tokens, grid, channels, norm."""
    grids = _joined(f"{reading.side}x{reading.side}" for reading in trial.readings[1:])
    strides = _joined(str(stage.stride) for stage in spec.stages)
    widths = _joined(str(stage.width) for stage in spec.stages)
    tokens = f"{spec.prefix_tokens} prefix {'token' if spec.prefix_tokens == 1 else 'tokens'}"
    norm = f"final norm net.{trial.final_norm}" if trial.final_norm else "no final norm"
    count = f"{spec.depth} {'block' if spec.depth == 1 else 'blocks'}"
    grid = f"{grids} grid of patch {strides}"
    return f"{count} of {in_words(blocks)}, {tokens} + {grid}, {widths} channels, {norm}"


def _joined(words: Iterable[str]) -> str:
    return "/".join(dict.fromkeys(words))


def _input_lines(spec: BackboneSpec, images: InputImages) -> Iterator[str]:
    mean, std = (", ".join(f"{value:.4g}" for value in values) for values in (spec.mean, spec.std))
    yield (
        f"images of {spec.input_size} px ({images.size_source}); mean ({mean}) and std ({std}) "
        f"({images.normalisation_source})"
    )

"""The parts of a network's blocks, if all have the usual ones: norm, attention or mixing, norm, MLP.

Nothing is taken from names or shapes alone: in a forward pass, what one module gives must be what the stream
gains between the two norms, and what another gives must be what it gains after them.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import torch
from torch import Tensor, nn

from layerboard.zoo.entries.architecture import Sublayers
from layerboard.zoo.features.hooked import exact_float32
from layerboard.zoo.features.taps import FUSED, before, eager, shows_probabilities, watch_attention
from layerboard.zoo.own.module.forward import run_watched
from layerboard.zoo.own.module.reading import Structure
from layerboard.zoo.spec import Tap

CLOSE = 1e-3  # tolerance of what the stream gains, as a share of its largest value
ROUNDING = 8  # rounding errors of the stream that it may contain
SUMS = 0.02  # tolerance of the sum of a row of probabilities around 1: bfloat16 rounds each by up to 0.004


class Call(NamedTuple):
    """One call of a module inside a block, with copies of its tensors."""

    name: str  # path from the block
    module: nn.Module
    given: Tensor
    gives: Tensor


class BlockRun(NamedTuple):
    """What one block was given, what its modules did in the order of their ends, and what it gives."""

    entering: Tensor
    calls: Sequence[Call]
    leaving: Tensor


def find_attention(structure: Structure) -> tuple[str, int]:
    """Path in each block of its one attention that can show probabilities, and its heads; "", 0 if none.

    The path is `FUSED` if no module can, but each block calls torch's fused attention once. Each row must sum
    to 1 over the tokens of the block: attention inside windows is not accepted.
    """
    subject, net = structure.subject, structure.subject.net
    blocks = [net.get_submodule(path) for path in subject.blocks]
    names = {name for block in blocks for name, part in block.named_modules() if shows_probabilities(part)}
    if len(names) > 1 or any(reading.is_map for reading in structure.readings):
        return "", 0
    parts = Sublayers(attends=next(iter(names), FUSED))
    shown: list[Tensor | None] = []
    try:
        with ExitStack() as hooks, torch.no_grad(), exact_float32():
            hooks.enter_context(eager(net, parts))
            for block in blocks:
                for hook in watch_attention(parts, block, shown.append):
                    hooks.callback(hook.remove)
            net(subject.images(subject.draw()[None]))
    except Exception:  # any error: the user's network cannot do this
        return "", 0
    tokens = structure.readings[-1].prefix + structure.readings[-1].side ** 2
    heads = 0 if not shown or shown[0] is None else shown[0].shape[1]
    fits = [
        maps is not None
        and maps.shape == (1, heads, tokens, tokens)
        and bool(((maps.sum(-1) - 1).abs() < SUMS).all())
        for maps in shown
    ]
    return (parts.attends, heads) if len(fits) == len(blocks) and all(fits) else ("", 0)


def find_parts(structure: Structure, attends: str) -> tuple[Sublayers | None, tuple[Tap, ...]]:
    """The parts of the blocks and the taps that they show; None and no taps unless all blocks are alike.

    ``attends`` is what shows the attention probabilities, as `find_attention` gives it.
    """
    parts = [_parts_of(run, attends) for run in _runs(structure)]
    first = parts[0]
    if first is None or any(other != first for other in parts):
        return (Sublayers(attends=attends) if attends else None), ()
    heads: tuple[Tap, ...] = ("heads",) if first.heads else ()
    hidden: tuple[Tap, ...] = ("mlp_hidden",) if first.hidden else ()
    return first, ("input", "norm1", *heads, "attention", "mid", "norm2", *hidden, "mlp")


def _runs(structure: Structure) -> list[BlockRun]:
    """What happens inside each block for one image, block by block."""
    subject, net = structure.subject, structure.subject.net
    entering: list[Tensor] = []
    done: list[BlockRun] = []
    calls: list[Call] = []

    def see(path: str, given: Tensor | None, gives: Tensor | None) -> None:
        if given is None or gives is None:
            return
        if path in subject.blocks:
            done.append(BlockRun(entering[-1], tuple(calls), gives.clone()))
            calls.clear()
            return
        block = next(block for block in subject.blocks if path.startswith(f"{block}."))
        calls.append(Call(path[len(block) + 1 :], net.get_submodule(path), given.clone(), gives.clone()))

    inside = [
        path
        for block in subject.blocks
        for path in (
            block,
            *(f"{block}.{name}" for name, _ in net.get_submodule(block).named_modules() if name),
        )
    ]
    with ExitStack() as hooks:
        for path in subject.blocks:
            keep: Callable[[Tensor], None] = lambda stream: entering.append(stream.clone())  # noqa: E731
            hooks.callback(before(net.get_submodule(path), keep).remove)
        run_watched(net, subject.images(subject.draw()[None]), inside, see)
    return done


def _parts_of(run: BlockRun, attends: str) -> Sublayers | None:
    """The parts of one block; None if it has not the usual ones."""
    norms = [number for number, call in enumerate(run.calls) if _is_norm(call, run.entering)]
    firsts = (number for number in norms if torch.equal(run.calls[number].given, run.entering))
    if (first := next(firsts, None)) is None:
        return None
    for second in (number for number in norms if number > first):
        mid, between, later = run.calls[second].given, run.calls[first + 1 : second], run.calls[second + 1 :]
        attention, mlp = _giving(between, mid - run.entering, mid), _giving(later, run.leaving - mid, mid)
        if attention and mlp and run.calls[first].name != run.calls[second].name:
            return Sublayers(
                norm1=run.calls[first].name,
                norm2=run.calls[second].name,
                attention=_called_once(run, attention),
                mlp=_called_once(run, mlp),
                attends=attends,
                heads=_projection(_inside(between, attends), mid),
                hidden=tuple(filter(None, (_projection(later, mid),))),
                gives_probabilities=bool(attends),
            )
    return None


def _is_norm(call: Call, stream: Tensor) -> bool:
    """Whether it is a norm of tokens or cells of the stream's shape."""
    is_norm = "norm" in type(call.module).__name__.lower()
    return is_norm and call.given.shape == call.gives.shape == stream.shape


def _giving(calls: Sequence[Call], gain: Tensor, stream: Tensor) -> list[str]:
    """Names of the modules that give what the stream gains, in order."""
    rounding = ROUNDING * torch.finfo(stream.dtype).eps * float(stream.abs().max())
    most = CLOSE * float(gain.abs().max()) + rounding
    alike = (call for call in calls if call.gives.shape == gain.shape)
    return [call.name for call in alike if float((call.gives - gain).abs().max()) <= most]


def _called_once(run: BlockRun, names: Sequence[str]) -> str:
    """The last of these modules that the block calls once; "" if there is none: the gain is a difference."""
    every = [call.name for call in run.calls]
    return next((name for name in reversed(names) if every.count(name) == 1), "")


def _inside(calls: Sequence[Call], attends: str) -> Sequence[Call]:
    """The calls of modules inside the one that shows attention probabilities, until it ends."""
    ends = next((number for number, call in enumerate(calls) if call.name == attends), 0)
    return [call for call in calls[:ends] if call.name.startswith(f"{attends}.")]


def _projection(calls: Sequence[Call], stream: Tensor) -> str:
    """The last linear layer that projects to the width of the stream; "" if there is none."""
    linear = (call for call in reversed(calls) if isinstance(call.module, nn.Linear))
    return next((call.name for call in linear if call.gives.shape == stream.shape), "")

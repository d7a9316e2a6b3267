"""The parts of a network's blocks, if all have the usual ones: norm, attention or mixing, norm, MLP.

Nothing is taken from names or shapes alone: in a forward pass, what one module gives must be what the stream
gains between the two norms, and what another gives must be what it gains after them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import combinations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, softmax

from layerboard.zoo.entries.architecture import Sublayers
from layerboard.zoo.features.pass_context import is_out_of_memory
from layerboard.zoo.features.taps import FUSED, Watched, eager, watch_attention
from layerboard.zoo.own.module.forward import Call, are_equal, calls_of
from layerboard.zoo.own.module.reading import Structure
from layerboard.zoo.spec import Tap

CLOSE = 1e-3  # tolerance of what the stream gains, as a share of its largest value
ROUNDING = 8  # rounding errors of the stream that it may contain
SOFTMAX = (softmax, torch.softmax, Tensor.softmax)
FEWEST = 8  # weights of a softmax that are of tokens: those of the branches of a ConvNet are two to four
SUMS = 0.02  # tolerance of the sum of a row of probabilities around 1: bfloat16 rounds each by up to 0.004


def find_attention(structure: Structure) -> tuple[str, int]:
    """Path in each block of its one attention that can show probabilities, and the heads of the last.

    The path is `FUSED` if each block calls torch's fused attention once. It is "" unless each row sums to 1
    over the tokens of the block, unlike inside windows; heads are then those that the block states, or one
    if any block weights tokens by a softmax, or 0.
    """
    subject, net, last = structure.subject, structure.subject.net, structure.readings[-1]
    blocks = [net.get_submodule(path) for path in subject.blocks]
    every = (named for block in blocks for named in block.named_modules())
    names = {name for name, part in every if isinstance(part, nn.MultiheadAttention)}
    parts = Sublayers(attends=names.pop() if len(names) == 1 else FUSED)
    shown: list[Tensor | None] = []
    running, weighted = list[nn.Module](), list[int]()  # blocks; and over how many they take each softmax

    def count(args: Sequence[int], named: Mapping[str, int], weights: Tensor) -> None:
        if running:
            weighted.append(weights.shape[named.get("dim", [*args, -1][1])])

    try:
        with ExitStack() as hooks:
            hooks.enter_context(eager(net, parts))
            for function in SOFTMAX:
                hooks.enter_context(Watched(function, count))
            for block in blocks:
                hooks.callback(block.register_forward_pre_hook(lambda *call: running.append(call[0])).remove)
                hooks.callback(block.register_forward_hook(lambda *call: running.clear()).remove)
                for hook in watch_attention(parts, block, shown.append):
                    hooks.callback(hook.remove)
            net(subject.images(subject.draw()[None]))
    except Exception as error:  # any other error: the user's network cannot do this
        if is_out_of_memory(error):
            raise
        return "", 0
    maps = [each for each in shown if each is not None]
    tokens, heads = last.prefix + last.side**2, maps[0].shape[1] if maps else 0
    fits = len(shown) == len(maps) == len(blocks) and not any(each.is_map for each in structure.readings)
    fits = fits and all(each.shape == (1, heads, tokens, tokens) for each in maps)
    if fits and all(bool(((each.sum(-1) - 1).abs() < SUMS).all()) for each in maps):
        return parts.attends, heads
    attends = bool(maps) or max(weighted, default=0) >= FEWEST
    stated = (getattr(module, "num_heads", 0) for module in blocks[-1].modules())
    return "", max((count for count in stated if isinstance(count, int)), default=0) or int(attends)


def find_parts(structure: Structure, attends: str) -> tuple[Sublayers | None, tuple[Tap, ...]]:
    """The parts of the blocks and the taps that they show; None and no taps unless all blocks are alike.

    ``attends`` is what shows the attention probabilities, as `find_attention` gives it.
    """
    subject, net = structure.subject, structure.subject.net
    inside = tuple(f"{block}." for block in subject.blocks)
    paths = [path for path, _ in net.named_modules() if f"{path}.".startswith(inside)]
    mixed: list[Tensor] = []  # the outputs of all heads, side by side
    with Watched(
        scaled_dot_product_attention, lambda *call: mixed.append(call[-1].transpose(1, -2).flatten(2))
    ):
        calls = calls_of(net, subject.images(subject.draw()[None]), paths)
    first, *others = (_parts_of(net, block, calls, attends, mixed) for block in subject.blocks)
    if first is None or any(other != first for other in others):
        return (Sublayers(attends=attends) if attends else None), ()
    heads: tuple[Tap, ...] = ("heads",) if first.heads else ()
    hidden: tuple[Tap, ...] = ("mlp_hidden",) if first.hidden else ()
    return first, ("input", "norm1", *heads, "attention", "mid", "norm2", *hidden, "mlp")


def _parts_of(
    net: nn.Module, path: str, every: Sequence[Call], attends: str, mixed: Sequence[Tensor]
) -> Sublayers | None:
    """The parts of one block, given the calls of all; None if it has not the usual ones."""
    block = net.get_submodule(path)
    whole = next(call for call in every if call.path == path)
    inside = (call for call in every if call.path.startswith(f"{path}."))
    calls = [call._replace(path=call.path.removeprefix(f"{path}.")) for call in inside]
    norms = [
        number
        for number, call in enumerate(calls)
        if "norm" in type(block.get_submodule(call.path)).__name__.lower()
        and call.given.shape == call.gives.shape == whole.given.shape == whole.gives.shape
    ]
    for first, second in combinations(norms, 2):
        norm1, norm2 = calls[first], calls[second]
        if norm1.path == norm2.path or not are_equal(norm1.given, whole.given):
            continue
        mid, between, later = norm2.given, calls[first + 1 : second], calls[second + 1 :]
        attention = _adding(between, mid - whole.given, mid, calls)
        mlp = _adding(later, whole.gives - mid, mid, calls)
        if attention is not None and mlp is not None:
            mixing = [call for call in between if any(are_equal(call.given, each) for each in mixed)]
            return Sublayers(
                norm1=norm1.path,
                norm2=norm2.path,
                attention=attention,
                mlp=mlp,
                attends=attends,
                heads=_projection(block, mixing, mid),
                hidden=tuple(filter(None, (_projection(block, later, mid),))),
                gives_probabilities=bool(attends),
            )
    return None


def _adding(calls: Sequence[Call], gain: Tensor, stream: Tensor, every: Sequence[Call]) -> str | None:
    """Path of the last module that gives what the stream gains; None if none does.

    Of those that the block calls once: "" if there is none, so that the gain must be read as a difference.
    """
    rounding = ROUNDING * torch.finfo(stream.dtype).eps * float(stream.abs().max())
    most = CLOSE * float(gain.abs().max()) + rounding
    alike = (call for call in calls if call.gives.shape == gain.shape)
    giving = [call.path for call in alike if float((call.gives - gain).abs().max()) <= most]
    times = Counter(call.path for call in every)
    return next((path for path in reversed(giving) if times[path] == 1), "") if giving else None


def _projection(block: nn.Module, calls: Sequence[Call], stream: Tensor) -> str:
    """The last linear layer that projects to the width of the stream; "" if there is none."""
    alike = [call.path for call in calls if call.gives.shape == stream.shape]
    linear = (path for path in reversed(alike) if isinstance(block.get_submodule(path), nn.Linear))
    return next(linear, "")

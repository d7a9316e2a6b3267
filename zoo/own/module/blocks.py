"""The residual blocks of a network: those that the user names, or those that are obvious."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

from torch import Tensor, nn

from layerboard.zoo.errors import InputError, shortened, some
from layerboard.zoo.own.module.forward import Call, are_equal, calls_of
from layerboard.zoo.own.module.options import BlocksOption

CONTAINERS = (nn.ModuleList, nn.Sequential)  # kinds of modules whose members may be blocks
PATTERN = "pattern of names in net.named_modules(), such as 'layers.*', or a list of names"

Paths = tuple[str, ...]  # dotted paths of a network's blocks, first to last


def named_blocks(net: nn.Module, given: BlocksOption) -> Paths:
    """The blocks that the user names; raises InputError if they are not in the network, or if there are none.

    A path without ``*`` at its end that leads to a list of modules means the members of the list, unless it
    is one of several.
    """
    every, alone = ([given], True) if isinstance(given, str) else (given, False)
    paths: list[str] = []
    for part in every.children() if isinstance(every, nn.Module) else every:
        named = _paths_like(net, part, alone) if isinstance(part, str) else [path_of(net, part, "a block")]
        if not named:
            none = f"names no module of {type(net).__name__}; {_offer(net)}"
            raise InputError(f"blocks={shortened(part)} {none}")
        paths += named
    if not paths:
        raise InputError(f"blocks={shortened(given)} is empty; {_offer(net)}")
    return tuple(paths)


def path_of(net: nn.Module, module: object, what: str) -> str:
    """Dotted path of a module in a network; raises InputError if it is not in it."""
    if not isinstance(module, nn.Module):
        raise InputError(f"{what} should be a module of the network; found {shortened(module)}")
    path: str | None = next((path for path, member in net.named_modules() if member is module), None)
    if not path:
        raise InputError(f"{what}, a {type(module).__name__}, is no module inside {type(net).__name__}")
    return path


def find_blocks(net: nn.Module, images: Tensor, preferred: Sequence[str] = ()) -> tuple[Paths, list[Paths]]:
    """The members of the one list in which each module takes the output of the one before, and other lists.

    They are of one class, with submodules and weights, in a ModuleList or Sequential. Lists whose paths
    differ in numbers only (``layer1`` to ``layer4`` of a ResNet) count as one. Of lists inside each other the
    outer one counts, unless it holds stages. Of several lists, the longest of those inside or around the
    ``preferred`` paths is taken if there are such paths, otherwise the one beside stems (a hybrid's ResNet).
    Raises InputError if it is not obvious which modules the blocks are, with what to write.
    """
    lists = _lists(net)
    calls = calls_of(net, images, [path for row in lists for path in chain(*row)])
    times = Counter(call.path for call in calls)
    once = {call.path: call for call in calls if times[call.path] == 1}  # in the order in which they end
    rows = [tuple(chain(*row)) for row in lists if all(_is_chain(paths, once) for paths in row)]
    stages = [row for row in rows if any(_are_stages(row, inner, once) for inner in rows)]
    blocks = [row for row in rows if row not in stages]
    blocks = [row for row in blocks if not any(_is_inside(row, other) for other in blocks if other != row)]
    near = [row for row in blocks if _is_inside(row, preferred) or _is_inside(preferred, row)]
    rest = near or [row for row in blocks if not any(_is_stem(net, row, other, once) for other in blocks)]
    if len(rest) == 1 or near:
        taken = max(rest, key=len)
        return taken, [row for row in blocks if row != taken]
    raise InputError(
        f"{type(net).__name__} has {'several lists' if blocks else 'no list'} of modules of one class, each "
        f"taking the output of the one before, so its blocks are not obvious; {_offer(net)}"
    )


def _lists(net: nn.Module) -> list[list[Paths]]:
    """The paths of repeated modules by their containers, those in alike places in one group.

    A list with a member of another class, or without weights, leaves all its like out: blocks with a gap
    would end before the network does.
    """
    groups: dict[str, list[Paths]] = {}
    odd: set[str] = set()
    for path, module in net.named_modules():
        if isinstance(module, CONTAINERS) and (members := dict(module.named_children())):
            pattern = _PLACE.sub("*", path)
            composed = [bool([*each.children()] and [*each.parameters()]) for each in members.values()]
            if not all(composed) or len({type(each) for each in members.values()}) > 1:
                odd.add(pattern)
            before = f"{path}." if path else ""
            groups.setdefault(pattern, []).append(tuple(f"{before}{name}" for name in members))
    return [row for pattern, row in groups.items() if pattern not in odd and sum(map(len, row)) > 1]


# The numbers of a path in which lists in alike places may differ: those of members, and at the end.
_PLACE = re.compile(r"(?<![^.])\d+(?![^.])|\d+(?=[^.]*$)")


def _is_chain(paths: Paths, once: Mapping[str, Call]) -> bool:
    """Whether each module ran once, and on the output of the one before."""
    row = [once[path] for path in paths if path in once]
    passed_on = all(are_equal(call.gives, following.given) for call, following in pairwise(row))
    return len(row) == len(paths) and passed_on and row[-1].gives.numel() > 0


def _are_stages(row: Paths, inner: Paths, once: Mapping[str, Call]) -> bool:
    """Whether each module holds some of the inner ones, and one of them gives what its last one gives.

    Residual blocks around lists of layers do not, since the skip is added.
    """
    held = [[path for path in inner if path.startswith(f"{outer}.")] for outer in row]
    ends = zip(row, held, strict=True)
    return all(held) and any(are_equal(once[outer].gives, once[paths[-1]].gives) for outer, paths in ends)


def _is_stem(net: nn.Module, row: Paths, other: Paths, once: Mapping[str, Call]) -> bool:
    """Whether these modules are convolutions that give maps, after which the others give tokens."""
    order, inside = [*once], (module for path in row for module in net.get_submodule(path).modules())
    is_before = order.index(row[-1]) < order.index(other[0])
    gives_tokens = (once[row[-1]].gives.ndim, once[other[0]].gives.ndim) == (4, 3)
    return is_before and gives_tokens and not any(isinstance(module, nn.Linear) for module in inside)


def _is_inside(row: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one of these modules is one of the others, or inside it."""
    return any(f"{path}.".startswith(f"{outer}.") for outer in other for path in row)


def _offer(net: nn.Module) -> str:
    """What to write as ``blocks=``: the outermost modules of one class with alike names, and how many."""
    alike: dict[tuple[str, type], list[str]] = {}
    for path, module in net.named_modules():
        if path and [*module.children()] and [*module.parameters()]:
            alike.setdefault((re.sub(r"\d+", "*", path), type(module)), []).append(path)
    rows = {key: paths for key, paths in alike.items() if len(paths) > 1}
    offered: list[str] = []
    for (pattern, kind), paths in rows.items():
        if not any(_is_inside(paths, other) for other in rows.values() if other != paths):
            text = repr(pattern if _paths_like(net, pattern) == paths else paths)
            offered.append(f"{text} ({len(paths)} {kind.__name__})")
    return f"give blocks={some(offered)}, or another {PATTERN}" if offered else f"give blocks=, a {PATTERN}"


def _paths_like(net: nn.Module, pattern: str, members: bool = False) -> list[str]:
    """Paths that match a pattern; on request the members of a list that it names without ``*`` at its end."""
    names = pattern.removeprefix("net.").split(".")
    like = re.compile(r"\.".join(re.escape(name).replace(r"\*", r"[^.]+") for name in names))
    paths: list[str] = []
    for path, module in net.named_modules():
        if path and like.fullmatch(path):
            is_list = members and "*" not in names[-1] and isinstance(module, CONTAINERS)
            inside = [f"{path}.{name}" for name, _ in module.named_children()] if is_list else []
            paths += inside or [path]
    return paths


def path_pattern(paths: Paths) -> str:
    """The location of blocks, such as ``net.layers.*.blocks``: differing parts as ``*``, no final number."""
    if len(paths) == 1:
        return f"net.{paths[0]}"
    parents = {path.rpartition(".")[0] for path in paths}
    if len(parents) == 1 and all(path.rpartition(".")[2].isdigit() for path in paths):
        return f"net.{parents.pop() or '*'}"
    patterns = dict.fromkeys(re.sub(r"\.\*$", "", re.sub(r"\d+", "*", path)) for path in paths)
    return "net." + (" and ".join(patterns) if len(patterns) < 4 else f"{paths[0]} to {paths[-1]}")

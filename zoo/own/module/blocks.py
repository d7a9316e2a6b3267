"""The residual blocks of a network: those that the user names, or those that are obvious."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor, nn

from layerboard.zoo.errors import InputError, shortened, some
from layerboard.zoo.own.module.forward import run_watched

CONTAINERS = (nn.ModuleList, nn.Sequential)  # kinds of modules whose members may be blocks
PATTERN = "pattern of names in net.named_modules(), such as 'layers.*', or a list of names"
GIVE = f"give blocks=, a {PATTERN}"

# A container, a dotted path in which ``*`` matches any name, or a list of modules or of such paths.
BlocksOption = nn.Module | str | Sequence[nn.Module | str]
Paths = tuple[str, ...]  # dotted paths of a network's blocks, first to last


class Run(NamedTuple):
    """One run of a module: the first tensors of its input and output, and the version of the latter.

    A tensor that is changed in place later is the same tensor with another version.
    """

    before: Tensor | None
    after: Tensor | None
    version: int


Runs = Mapping[str, Sequence[Run]]  # of modules by path


def named_blocks(net: nn.Module, given: BlocksOption) -> Paths:
    """The blocks that the user names; raises InputError if they are not in the network, or if there are none.

    A path without ``*`` at its end that leads to a list of modules means the members of the list, unless it
    is one of several.
    """
    every, alone = ([given], True) if isinstance(given, str) else (given, False)
    paths: list[str] = []
    for one in every.children() if isinstance(every, nn.Module) else every:
        named = _paths_like(net, one, alone) if isinstance(one, str) else [path_of(net, one, "a block")]
        if not named:
            raise InputError(
                f"blocks={shortened(one)} names no module of {type(net).__name__}; {_offer(net)}"
            )
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


def find_blocks(net: nn.Module, images: Tensor, preferred: Sequence[str] = ()) -> Paths:
    """The members of the one list in which each module takes the output of the one before.

    They are of one class, in a ModuleList or Sequential. Lists whose paths differ in numbers only (``layer1``
    to ``layer4`` of a ResNet) count as one. A list of stages gives way to the lists of blocks inside them.
    Modules without submodules are no blocks, nor are those that run in parallel. Of several lists, the
    longest of those inside or around the ``preferred`` paths is taken if there are such paths. Raises
    InputError if it is not obvious which modules the blocks are, with what to write.
    """
    chains = _chains(net, images)
    rows = [row for row in chains if not any(_gives_way(row, other) for other in chains if other != row)]
    if len(rows) > 1 and preferred:
        rows = [max([row for row in rows if _touches(row, preferred)] or rows, key=len)]
    if len(rows) == 1:
        return rows[0]
    raise InputError(
        f"{type(net).__name__} has {'several lists' if rows else 'no list'} of modules of one class, each "
        f"taking the output of the one before, so its blocks are not obvious; {_offer(net, rows)}"
    )


def _offer(net: nn.Module, rows: Sequence[Paths] = ()) -> str:
    """What to write as ``blocks=``: one of these lists, or else of modules of one class with alike names."""
    if not rows:
        alike: dict[tuple[str, type], list[str]] = {}
        for path, module in net.named_modules():
            if path and [*module.children()] and [*module.parameters()]:
                alike.setdefault((re.sub(r"\d+", "*", path), type(module)), []).append(path)
        every = [tuple(paths) for paths in alike.values() if len(paths) > 1]
        rows = [row for row in every if not any(_is_inside(row, other) for other in every)]
    if not rows:
        return GIVE
    return f"give blocks={some([_written(net, row) for row in rows])}, or another {PATTERN}"


def _written(net: nn.Module, paths: Paths) -> str:
    """The text of ``blocks=`` that names these modules, with their number and class."""
    pattern = re.sub(r"\d+", "*", paths[0])
    option = repr(pattern if tuple(_paths_like(net, pattern)) == paths else [*paths])
    return f"{option} ({len(paths)} {type(net.get_submodule(paths[0])).__name__})"


def _chains(net: nn.Module, images: Tensor) -> list[Paths]:
    """Lists of modules that run one after another in a forward pass, those alike but for numbers as one."""
    rows = _rows(net)
    around = [path for row in rows.values() for path in _parents(row)]
    members = [path for row in rows.values() for paths in row for path in paths]
    runs: dict[str, list[Run]] = {path: [] for path in (*members, *around)}

    def see(path: str, before: Tensor | None, after: Tensor | None) -> None:
        runs[path].append(Run(before, after, 0 if after is None else after._version))

    run_watched(net, images, runs, see)
    chains = {words: row for words, row in rows.items() if all(_is_chain(paths, runs) for paths in row)}
    outer = [path for row in chains.values() for paths in row for path in paths]
    outer += [path for path in around if len(runs[path]) == 1]
    streams = (row for row in chains.values() if _is_stream(row, outer, runs))
    return [tuple(path for paths in row for path in paths) for row in streams]


def _parents(row: Sequence[Sequence[str]]) -> list[str]:
    """The modules that hold one list each of a row of several."""
    parents = [paths[0].rpartition(".")[0].rpartition(".")[0] for paths in row]
    return parents if len(parents) > 1 and all(parents) and len({*parents}) == len(parents) else []


def _gives_way(row: Paths, other: Paths) -> bool:
    """Whether modules are stages, each around blocks of another list, or are inside blocks of another one."""
    is_around = all(any(path.startswith(f"{outer}.") for path in other) for outer in row)
    return is_around or (_is_inside(row, other) and not _gives_way(other, row))


def _is_inside(row: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one of these modules is inside one of the others."""
    return any(path.startswith(f"{outer}.") for outer in other for path in row)


def _touches(row: Paths, preferred: Sequence[str]) -> bool:
    """Whether a module of a list is one of these paths, inside of one or around one."""
    return bool({*row} & {*preferred}) or _is_inside(row, preferred) or _is_inside(preferred, row)


def _rows(net: nn.Module) -> dict[str, list[list[str]]]:
    """Paths of repeated modules, one list per container, by the pattern of the containers' paths."""
    rows: dict[str, list[list[str]]] = {}
    odd: set[str] = set()
    for path, module in net.named_modules():
        members = dict(module.named_children()) if isinstance(module, CONTAINERS) else {}
        words = re.sub(r"\d+", "*", path)
        # with submodules and weights
        are_composed = all([*member.children()] and [*member.parameters()] for member in members.values())
        if len({type(member) for member in members.values()}) == 1 and are_composed:
            rows.setdefault(words, []).append([f"{path}.{name}" if path else name for name in members])
        elif members:
            odd.add(words)  # a sequence with a gap would end before the network does
    return {words: row for words, row in rows.items() if words not in odd and sum(map(len, row)) > 1}


def _is_chain(paths: Sequence[str], runs: Runs) -> bool:
    """Whether each module ran once, and on the output of the one before."""
    if any(len(runs[path]) != 1 for path in paths):
        return False
    row = [runs[path][0] for path in paths]
    passed_on = all(run.after is following.before for run, following in pairwise(row))
    return passed_on and all(run.after is not None for run in row)


def _is_stream(row: Sequence[Sequence[str]], outer: Sequence[str], runs: Runs) -> bool:
    """Whether sequences inside other modules end with the output of these, at least once.

    The blocks of a stage do; the layers of a residual block do not, since the skip is added.
    """
    ends = [paths[-1] for paths in row]
    pairs = [(runs[path][0], runs[end][0]) for end in ends for path in outer if end.startswith(f"{path}.")]
    same = (whole.after is part.after and whole.version == part.version for whole, part in pairs)
    return not pairs or any(same)


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

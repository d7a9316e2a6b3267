"""The residual blocks of a network: those that the user names, or those that are found."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor, nn

from layerboard.zoo.errors import InputError, shortened
from layerboard.zoo.own.module.forward import run_watched

CONTAINERS = (nn.ModuleList, nn.Sequential)  # kinds of modules whose members may be blocks
GIVE = "give blocks=, a list of modules of the network or a path such as 'layers.*.blocks'"

# A list of modules, a container, or a dotted path in which ``*`` matches any name.
BlocksHint = nn.Module | Sequence[nn.Module] | str
Paths = tuple[str, ...]  # dotted paths of a network's blocks, first to last


class Run(NamedTuple):
    """One run of a module: the first tensors of its input and output, and the version of the latter.

    A tensor that is changed in place later is the same tensor with another version.
    """

    before: Tensor | None
    after: Tensor | None
    version: int


Runs = Mapping[str, Sequence[Run]]  # of modules by path


def named_blocks(net: nn.Module, hint: BlocksHint) -> Paths:
    """The blocks that the user names; raises InputError if they are not in the network, or if there are none.

    A path without ``*`` at its end that leads to a list of modules means the members of the list.
    """
    if isinstance(hint, str):
        paths = _paths_like(net, hint)
    else:
        members = hint.children() if isinstance(hint, nn.Module) else hint
        paths = [path_of(net, module, "a block") for module in members]
    if not paths:
        raise InputError(f"blocks={shortened(hint)} names no module of {type(net).__name__}; {GIVE}")
    return tuple(paths)


def path_of(net: nn.Module, module: object, what: str) -> str:
    """Dotted path of a module in a network; raises InputError if it is not in it."""
    if not isinstance(module, nn.Module):
        raise InputError(f"{what} should be a module of the network; found {shortened(module)}")
    path: str | None = next((path for path, member in net.named_modules() if member is module), None)
    if not path:
        raise InputError(f"{what}, a {type(module).__name__}, is no module inside {type(net).__name__}")
    return path


def find_blocks(net: nn.Module, images: Tensor) -> Paths:
    """The longest sequence of modules of one kind in which each takes the output of the one before.

    Lists whose paths differ in numbers only (the stages of Swin, ``layer1`` to ``layer4`` of a ResNet) count
    as one sequence. Modules without submodules are no blocks, nor are those that run in parallel.
    """
    rows = _rows(net)
    runs: dict[str, list[Run]] = {path: [] for row in rows.values() for paths in row for path in paths}

    def see(path: str, before: Tensor | None, after: Tensor | None) -> None:
        runs[path].append(Run(before, after, 0 if after is None else after._version))

    run_watched(net, images, runs, see)
    chains = {words: row for words, row in rows.items() if all(_is_chain(paths, runs) for paths in row)}
    outer = [path for row in chains.values() for paths in row for path in paths]
    chains = {words: row for words, row in chains.items() if _is_stream(row, outer, runs)}
    if not chains:
        raise InputError(
            f"no chain of repeated modules, each taking the output of the one before, was found in "
            f"{type(net).__name__}; {GIVE}"
        )
    words = max(chains, key=lambda words: (sum(map(len, chains[words])), -len(words)))
    return tuple(path for paths in chains[words] for path in paths)


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


def _paths_like(net: nn.Module, pattern: str) -> list[str]:
    """Paths that match a pattern; if it names a list without ``*`` at its end, the members."""
    names = pattern.removeprefix("net.").split(".")
    like = re.compile(r"\.".join(re.escape(name).replace(r"\*", r"[^.]+") for name in names))
    paths: list[str] = []
    for path, module in net.named_modules():
        if path and like.fullmatch(path):
            is_list = "*" not in names[-1] and isinstance(module, CONTAINERS)
            members = [f"{path}.{name}" for name, _ in module.named_children()] if is_list else []
            paths += members or [path]
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

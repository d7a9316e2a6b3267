"""Which modules of a network are its residual blocks: those that somebody names, or those that are found."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn

from zoo.errors import InputError, shortened
from zoo.load.module.streams import run_watched

LISTS = (nn.ModuleList, nn.Sequential)
"""Containers whose members may be blocks."""

GivenBlocks = nn.Module | Sequence[nn.Module] | str
"""A list of modules, a container, or a dotted path in which ``*`` stands for any name."""

GIVE = "give blocks=, a list of modules of the network or a path such as 'layers.*.blocks'"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a module: the first tensors that it was given and gave, and the version of the latter.

    A tensor that is changed in place later is the same tensor of another version.
    """

    before: Tensor | None
    after: Tensor | None
    version: int

    def ends_as(self, other: "Run") -> bool:
        """Whether both gave the same tensor, unchanged between."""
        return self.after is other.after and self.version == other.version


Runs = Mapping[str, Sequence[Run]]
"""Runs of modules by path."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a network, first to last.

    Attributes:
        paths: Dotted path of each.
        words: Where they are, such as ``net.layers.*.blocks``.
    """

    paths: tuple[str, ...]
    words: str


def named_blocks(net: nn.Module, given: GivenBlocks) -> Blocks:
    """The blocks that somebody names.

    A path without ``*`` at its end that leads to a list of modules stands for its members.

    Raises:
        InputError: They are not in the network, or there are none.
    """
    if isinstance(given, str):
        paths = _paths_like(net, given)
    else:
        members = list(given.children()) if isinstance(given, nn.Module) else list(given)
        paths = [path_of(net, module, "a block") for module in members]
    if not paths:
        raise InputError(f"blocks={shortened(given)} names no module of {type(net).__name__}; {GIVE}")
    return Blocks(tuple(paths), f"net.{_pattern(paths)}")


def path_of(net: nn.Module, module: object, what: str) -> str:
    """Dotted path of a module in a network; raises InputError where it is not in it."""
    if not isinstance(module, nn.Module):
        raise InputError(f"{what} should be a module of the network; found {shortened(module)}")
    path: str | None = next((path for path, one in net.named_modules() if one is module), None)
    if not path:
        raise InputError(f"{what}, a {type(module).__name__}, is no module inside {type(net).__name__}")
    return path


def find_blocks(net: nn.Module, images: Tensor) -> Blocks:
    """The longest row of modules of one kind that pass on what they give, one to the next.

    Lists whose paths differ in numbers only (the stages of Swin, ``layer1`` to ``layer4`` of a ResNet) count
    as one row. Modules without modules in them are no blocks, nor are those that run beside each other.

    Args:
        net: The network.
        images: A batch that it takes.

    Raises:
        InputError: There is no such row, or the network does not take the images.
    """
    rows = _rows(net)
    members = {path: net.get_submodule(path) for row in rows.values() for one in row for path in one}
    passed: dict[str, list[Run]] = {path: [] for path in members}

    def see(path: str, before: Tensor | None, after: Tensor | None) -> None:
        passed[path].append(Run(before, after, 0 if after is None else after._version))

    run_watched(net, images, members, see)
    chains = {words: row for words, row in rows.items() if all(_is_chain(one, passed) for one in row)}
    outer = [path for row in chains.values() for one in row for path in one]
    chains = {words: row for words, row in chains.items() if _is_stream(row, outer, passed)}
    if not chains:
        raise InputError(
            f"no row of repeated modules of {type(net).__name__} passes on what it gives, one to the "
            f"next; {GIVE}"
        )
    words = max(chains, key=lambda one: (sum(map(len, chains[one])), -len(one)))
    return Blocks(tuple(path for one in chains[words] for path in one), f"net.{words}")


def _rows(net: nn.Module) -> dict[str, list[list[str]]]:
    """Paths of repeated modules, a list for each container, by the pattern of the containers' paths."""
    rows: dict[str, list[list[str]]] = {}
    odd: set[str] = set()
    for path, module in net.named_modules():
        members = dict(module.named_children()) if isinstance(module, LISTS) else {}
        words = re.sub(r"\d+", "*", path)
        kinds = {type(one) for one in members.values()}
        if len(kinds) == 1 and all(_is_composed(one) for one in members.values()):
            rows.setdefault(words, []).append([f"{path}.{name}" if path else name for name in members])
        elif members:
            odd.add(words)  # a row with a gap would end before the network does
    return {words: row for words, row in rows.items() if words not in odd and sum(map(len, row)) > 1}


def _is_composed(module: nn.Module) -> bool:
    """Whether a module has modules in it, and weights."""
    return any(True for _ in module.children()) and any(True for _ in module.parameters())


def _is_chain(paths: Sequence[str], passed: Runs) -> bool:
    """Whether each module ran once, and on what the one before it gave."""
    if any(len(passed[path]) != 1 for path in paths):
        return False
    runs = [passed[path][0] for path in paths]
    passes_on = all(one.after is following.before for one, following in pairwise(runs))
    return passes_on and all(one.after is not None for one in runs)


def _is_stream(row: Sequence[Sequence[str]], outer: Sequence[str], passed: Runs) -> bool:
    """Whether rows inside other modules of a row end as those do, once at least.

    So do the blocks of a stage; the layers of a residual block do not, since what goes past them is added.
    """
    ends = [(path, one[-1]) for one in row for path in outer if one[-1].startswith(f"{path}.")]
    return not ends or any(passed[path][0].ends_as(passed[last][0]) for path, last in ends)


def _paths_like(net: nn.Module, pattern: str) -> list[str]:
    """Paths that a pattern means; of a list that it names without ``*`` at its end, the members."""
    names = pattern.removeprefix("net.").split(".")
    like = re.compile(r"\.".join(re.escape(name).replace(r"\*", r"[^.]+") for name in names))
    found = [path for path, _ in net.named_modules() if path and like.fullmatch(path)]
    if "*" in names[-1]:
        return found
    paths: list[str] = []
    for path in found:
        module = net.get_submodule(path)
        members = [name for name, _ in module.named_children()] if isinstance(module, LISTS) else []
        paths += [f"{path}.{name}" for name in members] or [path]
    return paths


def _pattern(paths: Sequence[str]) -> str:
    """Paths in a word: what differs between them as ``*``, and no number at the end."""
    if len(paths) == 1:
        return paths[0]
    parents = {path.rpartition(".")[0] for path in paths}
    if len(parents) == 1 and all(path.rpartition(".")[2].isdigit() for path in paths):
        return parents.pop() or "*"
    patterns = dict.fromkeys(re.sub(r"\.\*$", "", re.sub(r"\d+", "*", path)) for path in paths)
    return " and ".join(patterns) if len(patterns) < 4 else f"{paths[0]} to {paths[-1]}"

"""A split of images into a bank (train) and queries (val), made where a dataset brings none."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from tasks.datasets.files import some
from zoo.errors import InputError

SHARE = 20
"""Percent of each class that become queries."""

SEED = 0
"""Seed of the hash of names that chooses them."""

MADE = f"val made of {SHARE} % of each class of train by the hash of file names, seed {SEED}"
"""How the split was made, for people."""

MADE_SPLIT = f"train, val ({SHARE} % of each class, seed {SEED})"
"""The same in the field `split` of records."""


def split_names(names: Sequence[str], seed: int = SEED) -> tuple[list[str], list[str]]:
    """A class's names split into 80 % bank and 20 % queries (at least one), each sorted.

    The split depends on the hash of each name alone, so it is the same on every machine, and hardly changes
    when images are added: at most one other image goes to the other side.

    Args:
        names: At least two different names, in any order.
        seed: Another seed is another split.

    Returns:
        Names of the bank and names of the queries.
    """
    salt = seed.to_bytes(16, "little")
    ranked = sorted(names, key=lambda name: (blake2b(name.encode(), digest_size=8, salt=salt).digest(), name))
    queries = max(1, round(len(names) * SHARE / 100))
    return sorted(ranked[queries:]), sorted(ranked[:queries])


def require_splittable(sizes: Mapping[str, int], where: str) -> None:
    """Raise InputError unless there are two classes, and two images in each."""
    small = sorted(name for name, size in sizes.items() if size < 2)
    if small:
        raise InputError(
            f"expected at least 2 images in every class of {where}, to split them into a bank and queries, "
            f"found 1 in {some(small)}; add images or remove the class"
        )
    require_classes(len(sizes), where)


def require_classes(number: int, where: str, advice: str = "") -> None:
    """Raise InputError unless there are two classes."""
    if number < 2:
        raise InputError(f"expected at least 2 classes in {where}, found {number}{advice and f'; {advice}'}")

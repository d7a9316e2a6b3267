"""Frames of scores that nobody changes, and what was found in them: pages ask the same many times."""

import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import pandas as pd

Found = TypeVar("Found")

_FOUND: dict[int, dict[Hashable, Any]] = {}
"""For each kept frame, by its identity, what was found in it; it goes with the frame."""


def keep(scores: pd.DataFrame) -> pd.DataFrame:
    """Declare that a frame holds scores only, newest and in order, and never changes; gives it back."""
    if id(scores) not in _FOUND:
        _FOUND[id(scores)] = {}
        weakref.finalize(scores, _FOUND.pop, id(scores), None).atexit = False
    return scores


def is_kept(frame: pd.DataFrame) -> bool:
    """Whether `keep` was told of a frame."""
    return id(frame) in _FOUND


def once(frame: pd.DataFrame, key: Hashable, find: Callable[[], Found]) -> Found:
    """What ``find`` gives: looked for once in a frame that is kept, and each time in any other.

    Args:
        frame: What is looked through.
        key: What is looked for.
        find: Gives something that does not refer to the frame, which would live for ever.
    """
    found = _FOUND.get(id(frame))
    if found is None:
        return find()
    if key not in found:
        found[key] = find()
    result: Found = found[key]
    return result

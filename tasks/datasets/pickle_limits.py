"""How large and deep the object in a pickle is, told from its instructions before any is carried out.

A list that holds another one twice, which holds another one twice, and so on, fits into a hundred bytes and
takes for ever to hash, compare or print.
"""

import pickle
import pickletools
from collections.abc import Iterable
from dataclasses import dataclass

MOST_VALUES = 5_000_000
"""Values in a pickle, each counted as often as it is shown; the revisited ground truths have some 10,000."""

DEEPEST = 32
"""Containers within containers; the revisited ground truths have 4, their arrays a few more inside."""

_GROW = ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD")
_REMEMBER = ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE")
_RECALL = ("GET", "BINGET", "LONG_BINGET")


@dataclass(slots=True, eq=False)
class _Value:
    """Something on the stack of the unpickler; a mark has no values."""

    values: int = 1
    depth: int = 0
    held: bool = False

    def take(self, items: Iterable["_Value"]) -> None:
        """Hold other values, which stay as they are from then on; raises UnpicklingError."""
        for item in items:
            if self.held or item is self:
                raise pickle.UnpicklingError("a container changes while another one, or itself, holds it")
            item.held = True
            self.values += item.values
            self.depth = max(self.depth, item.depth + 1)
        if self.values > MOST_VALUES:
            raise pickle.UnpicklingError(f"more than {MOST_VALUES:,} values")
        if self.depth > DEEPEST:
            raise pickle.UnpicklingError(f"more than {DEEPEST} containers within each other")


class _Stack:
    """What the unpickler has at hand, and what it remembers."""

    def __init__(self) -> None:
        self._values: list[_Value] = []
        self._memo: dict[object, _Value] = {}

    def follow(self, operation: pickletools.OpcodeInfo, argument: object, done: int) -> None:
        """Do one instruction; raises UnpicklingError, LookupError for one that cannot be done."""
        if operation.name in _REMEMBER:
            index = len(self._memo) if argument is None else argument
            if not isinstance(index, int) or not 0 <= index <= done:
                raise pickle.UnpicklingError("a value is remembered at a place beyond all others")
            self._memo[index] = self._values[-1]
        elif operation.name in _RECALL:
            self._values.append(self._memo[argument])
        elif operation.name == "DUP":
            self._values.append(self._values[-1])
        elif operation.name == "MARK":
            self._values.append(_Value(values=0))
        else:
            taken = self._taken(operation)
            if operation.name in _GROW:
                taken[0].take(taken[1:])
                self._values.append(taken[0])
            elif operation.stack_after:
                made = _Value()
                made.take(taken)
                self._values.append(made)

    def _taken(self, operation: pickletools.OpcodeInfo) -> list[_Value]:
        """What an instruction takes off the stack, lowest first, without the mark."""
        wanted = list(operation.stack_before)
        above: list[_Value] = []
        if pickletools.markobject in wanted:
            wanted = wanted[: wanted.index(pickletools.markobject)]
            while (top := self._values.pop()).values:
                above.append(top)
        below = [self._values.pop() for _ in wanted]
        return below[::-1] + above[::-1]


def require_limits(content: bytes) -> None:
    """Raise UnpicklingError, LookupError or ValueError unless a pickle is whole and of moderate size."""
    stack = _Stack()
    for done, (operation, argument, _) in enumerate(pickletools.genops(content)):
        if done > MOST_VALUES:
            raise pickle.UnpicklingError(f"more than {MOST_VALUES:,} instructions")
        stack.follow(operation, argument, done)

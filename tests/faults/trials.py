"""What all trials share: how one is told, how much is tried, and what a good answer is."""

import random
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from layerboard.zoo.errors import InputError

SECONDS = 20
"""After which an answer is too late."""

LONGEST = 600
"""Characters of a sentence that people still read."""


@dataclass(frozen=True)
class Trial:
    """One fault and how it was answered.

    Attributes:
        what: The row of the table in which it is counted; trials of one row follow each other.
        name: What was done to what.
        problem: What is wrong with the answer, in a sentence; "" for the answer that is wanted.
    """

    what: str
    name: str
    problem: str


@dataclass(frozen=True)
class Effort:
    """How much is tried: one case in ``every``, ``times`` of each kind of file, drawn from a seed."""

    every: int
    times: int
    seed: int

    def draw(self) -> random.Random:
        """Random numbers, the same for every part."""
        return random.Random(self.seed)


class TooLateError(BaseException):
    """No answer in time; nothing that readers catch."""


def _too_late(*_: object) -> None:
    raise TooLateError(f"no answer in {SECONDS} seconds")


@contextmanager
def in_time() -> Iterator[None]:
    """Raise TooLateError in a block that takes too long."""
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def problem_of(act: Callable[[], object]) -> str:
    """What is wrong with how something bad was answered; "" for a sentence, or where it does no harm."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # pycocotools
        try:
            with in_time():
                act()
        except InputError as error:
            return _problem_of_sentence(str(error))
        except TooLateError as error:
            return str(error)
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:120]}"
    return ""


def _problem_of_sentence(text: str) -> str:
    if not text or len(text) > LONGEST:
        return f"a sentence of {len(text)} characters"
    return "a sentence with line breaks" if {*text} & {*"\n\0"} else ""

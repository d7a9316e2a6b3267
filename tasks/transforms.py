"""What may be done to the features of a layer before a task scores them, by name. Imports nothing heavy.

What each does is in `tasks.metrics.spread`; which tasks take which is decided where tasks meet their data.
"""

import re
from dataclasses import dataclass

from zoo.errors import InputError

MOST = 100_000  # more directions than the tokens of any layer have
WAYS = ("whiten", "zscore")  # transforms of vectors, fitted on those of images without their labels


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform: ``debias`` removes so many directions of the position from tokens, or all of them."""

    name: str  # ``debias``, ``whiten`` or ``zscore``
    components: int = 0

    def __str__(self) -> str:
        return f"{self.name}:{self.components}" if self.of_tokens else self.name

    @property
    def of_tokens(self) -> bool:
        """Whether it acts on the tokens of a grid; else on one vector an image."""
        return self.name == "debias"


def parse_transform(text: str) -> Transform:
    """The transform of a name such as ``debias:20`` or ``whiten``; raises InputError for another name."""
    if text in WAYS:
        return Transform(text)
    match = re.fullmatch(r"debias:([0-9]{1,6})", text)
    if match is None or int(match[1]) > MOST:
        raise InputError(
            f"--transform takes debias:K (K directions of the position, from 0), {' and '.join(WAYS)}; "
            f"found {text[:40]!r}"
        )
    return Transform("debias", int(match[1]))

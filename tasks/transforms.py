"""What may be done to the features of a layer before a task scores them, by name. Imports nothing heavy.

``debias:K`` removes K directions of the position from tokens, or as many as a layer has; ``whiten`` and
``zscore`` act on one vector an image, and are fitted on those of images without their labels. What each does
is in `tasks.metrics.spread`; which tasks take which is decided where tasks meet their data.
"""

import re

from layerboard.zoo.errors import InputError

MOST = 100_000  # more directions than the tokens of any layer have
WAYS = ("whiten", "zscore")


def parse_transform(text: str) -> str:
    """The one name of a transform; raises InputError where there is none such."""
    match = re.fullmatch(r"debias:([0-9]{1,6})", text)
    if text not in WAYS and (match is None or int(match[1]) > MOST):
        raise InputError(
            f"--transform takes debias:K (K directions of the position, from 0), {' and '.join(WAYS)}; "
            f"found {text[:40]!r}"
        )
    return f"debias:{components(text)}" if match else text


def components(transform: str) -> int:
    """How many directions of the position a transform removes from tokens."""
    return int(transform.partition(":")[2] or 0)


def of_tokens(transform: str) -> bool:
    """Whether it acts on the tokens of a grid; else on one vector an image."""
    return transform not in WAYS

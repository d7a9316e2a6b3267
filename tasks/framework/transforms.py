"""Transforms of a layer's features before scoring, by name. Imports nothing heavy.

``whiten`` and ``zscore`` act on one vector per image and are fitted without labels.
Compressions make vectors smaller in one or several steps, such as ``pca:128+int8``. All are defined in
`tasks.framework.transformed`. Whether a task takes a transform is decided when it is combined with its data.
"""

import re
from collections.abc import Sequence

from layerboard.zoo.errors import InputError, likely

WAYS = ("whiten", "zscore")
CODES = ("int8", "binary", "pq")  # steps that produce codes, so that no step can follow
STEPS = ("pca", "rp", "first", *CODES)  # those that make vectors smaller
BYTES = ("bytes", "bytes float32")  # metrics of compressions: size of a vector, and its uncompressed size
FLOAT32 = 4  # bytes of an uncompressed number


def parse_transform(text: str) -> str:
    """Name of a transform; raises InputError if there is no such transform."""
    if text not in WAYS:
        raise InputError(f"--transform takes {' and '.join(WAYS)}; found {text[:40]!r}{_meant(text, WAYS)}")
    return text


def parse_compression(text: str) -> str:
    """Normalised name of a compression; raises InputError if there is no such compression."""
    steps = [re.sub(r":0+", ":", step) for step in text.split("+")]
    known = re.compile(r"(pca|rp|first|pq):[1-9][0-9]{0,4}|int8|binary|whiten|zscore")
    last = [step_of(step)[0] in CODES for step in steps[:-1]]
    if not all(map(known.fullmatch, steps)) or any(last) or {*steps} <= {*WAYS}:
        raise InputError(
            "--compress takes pca:N, rp:N, first:N (N numbers a vector), int8, binary, pq:M (M bytes), or "
            f"several joined by +, such as pca:128+int8, of which int8, binary and pq:M come last; "
            f"found {text[:40]!r}{_meant(text, (*WAYS, *CODES[:2]))}"
        )
    return "+".join(steps)


def _meant(text: str, names: Sequence[str]) -> str:
    """What a wrong name of a step probably means, as the end of a sentence; empty if nothing is known."""
    numbered = re.fullmatch(r"(pca|rp|first|pq)[-_= ]?([0-9]{1,5})", text.casefold())
    close = [f"{numbered[1]}:{numbered[2]}"] if numbered else likely("value", text, names)
    return f"; did you mean {close[0]}?" if close else ""


def step_of(text: str) -> tuple[str, int]:
    """Name and number of a compression step; 0 if it has no number."""
    name, _, number = text.partition(":")
    return name, int(number) if number.isdecimal() else 0


def is_compression(transform: str) -> bool:
    """Whether a transform makes vectors smaller."""
    return any(step_of(step)[0] in STEPS for step in transform.split("+"))


def compressed_bytes(compression: str, dim: int) -> int:
    """Bytes of one compressed vector of ``dim`` numbers on disk, without data shared by all vectors."""
    for name, number in map(step_of, compression.split("+")):
        if name in CODES:
            return {"int8": dim, "binary": -(-dim // 8), "pq": number}[name]
        dim = number or dim
    return FLOAT32 * dim


def misfit(compression: str, images: int, dim: int) -> str:
    """Reason why a compression cannot be fitted on ``images`` vectors of ``dim`` numbers; "" if it can."""
    for step in compression.split("+"):
        name, number = step_of(step)
        if name in ("pca", "rp", "first") and number > dim:
            return f"{step} leaves {number} numbers of a vector, which has {dim}"
        if name == "pca" and number >= images:
            return f"{step} is fitted on more than {number} images; {images} could be read"
        if name == "pq" and dim % number:
            return f"{step} cuts a vector into {number} equal parts, which its {dim} numbers do not allow"
        if name == "pq" and images < 256:
            return f"{step} is fitted on at least 256 images; {images} could be read"
        dim = number or dim
    return ""

"""What is known of the file of a backbone's weights, as it was published."""

from dataclasses import dataclass
from pathlib import Path

FINGERPRINTS = Path(__file__).parents[1] / "fingerprints"
"""Folder of fingerprints of features (`zoo.load.feature_fingerprint`): NAME.json for each entry with one."""


@dataclass(frozen=True, slots=True)
class WeightFile:
    """The published file of a backbone's weights, and who says so; "" and None where nobody is known to.

    ``sha256`` are the digits of its SHA-256 (lower case), or the first of them if no others are known. They
    are of the one file ``name``, and without a name of nobody knows which. ``size`` is in bytes, of all files
    together where there are several.
    """

    name: str = ""
    sha256: str = ""
    size: int | None = None
    source: str = ""  # of these facts, and of the pinned commit
    note: str = ""  # what is open, such as other commits that are known


NO_FILE = WeightFile()  # of which nothing is known

"""What an audit finds; it is read where torch is not imported."""

import math
from typing import NamedTuple

DUPLICATE, LABEL, SERIES = "duplicate", "label", "series"  # kinds of findings


class Finding(NamedTuple):
    """A finding: one row of the table, with these columns."""

    finding: str  # its kind
    file: str
    other: str  # the duplicate, the nearest image of the suggested class, or the last file of a series
    label: str  # of the file
    other_label: str  # label of the other image; for a doubtful label the suggested class
    split: str  # splits of both, such as "train, val"; "" if there are none
    # by which it is sorted: 1 - distance / usual distance, probability of the class suggested, or files
    score: float
    cosine: float = math.nan  # of a pair of duplicates, the median of the backbones
    vote: float = math.nan  # share of the neighbours' votes for the class suggested, mean of the backbones
    agreeing: str = ""  # backbones whose neighbours vote so most, of how many

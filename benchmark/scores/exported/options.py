"""Choices of the scorers. Imports nothing heavy."""

from enum import StrEnum


class ProtocolName(StrEnum):
    """Whose rules are followed: those of all pairs, or the draw and the match of the paper's code."""

    standard = "standard"
    paper = "paper"


class Estimator(StrEnum):
    """Which HSIC is summed over batches; paper: unbiased, of Gram matrices that are scaled to [0, 1]."""

    unbiased = "unbiased"
    biased = "biased"
    paper = "paper"


class SegmentProtocol(StrEnum):
    """Whose rules are followed: ours, or those of the public evaluation of Hummingbird."""

    standard = "standard"
    hummingbird = "hummingbird"

"""Choices of the scorers. Imports nothing heavy."""

from enum import StrEnum


class ProtocolName(StrEnum):
    """Whose rules of keypoints are followed (`tasks.protocols`)."""

    standard = "standard"
    paper = "paper"
    probe3d = "probe3d"
    geoaware = "geoaware"
    sd_dino = "sd-dino"
    insid3 = "insid3"
    dift = "dift"


class Estimator(StrEnum):
    """Which HSIC is summed over batches; paper: unbiased, of Gram matrices that are scaled to [0, 1]."""

    unbiased = "unbiased"
    biased = "biased"
    paper = "paper"


class SegmentProtocol(StrEnum):
    """Whose rules are followed: ours, or those of the public evaluations of Hummingbird and of CAPI."""

    standard = "standard"
    hummingbird = "hummingbird"
    capi = "capi"

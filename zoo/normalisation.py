"""Input normalisations that several families share, for RGB pixels in [0, 1]."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Normalisation:
    """What is subtracted from a pixel in [0, 1], and what the difference is divided by."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
CLIP = Normalisation((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
UNIT = Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
"""Nothing is done to pixels in [0, 1]: the network takes them so, or normalises them itself."""

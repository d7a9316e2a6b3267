"""Random generators of the mini suite, with one namespace per split.

A generator is seeded by ``SeedSequence(ENTROPY, spawn_key=(namespace, *keys))``. The namespace is the first
word of the spawn key and differs between training images and each evaluation set, so that no stream of one
can be a stream of another, whatever the keys.
"""

from enum import IntEnum, unique

import numpy as np

ENTROPY = 20_230_619

Rng = np.random.Generator
Span = tuple[float, float]
Size = tuple[int, int]  # width and height of a picture in pixels


@unique
class Namespace(IntEnum):
    """Namespaces of random draws; the values determine pixels and are never reused."""

    TRAINING = 1
    IMAGENET_TRAIN = 2
    IMAGENET_VAL = 3
    RETRIEVAL_IDENTITIES = 4
    RETRIEVAL_VIEWS = 5
    RETRIEVAL_NAMES = 6
    VIDEO = 7
    KEYPOINTS = 8
    KEYPOINT_PAIRS = 9
    OBJECTS = 10
    PARTS = 11
    SCENES_TRAIN = 12
    SCENES_VAL = 13
    DEFECTS = 14
    THINGS = 15
    TARGETS = 16


def generator(namespace: Namespace, *keys: int) -> Rng:
    """A generator for that item of that namespace; keys are not negative."""
    sequence = np.random.SeedSequence(ENTROPY, spawn_key=(int(namespace), *keys))
    return Rng(np.random.PCG64(sequence))

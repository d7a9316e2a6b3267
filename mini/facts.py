"""Facts of the mini suite's datasets: classes and counts. How they are made up is `workshop.render.facts`."""

from typing import NamedTuple


class MiniClass(NamedTuple):
    """A class of figures that are drawn."""

    wnid: str  # folder name in the ImageNet layout; 9 in front keeps it apart from real WordNet ids
    name: str
    # groups of keypoints that differ only in near or far, left or right
    interchangeable: tuple[tuple[int, ...], ...] = ()


_FEET = (2, 8), (3, 9)  # of animals with four legs
_WING_TIPS = ((1, 8),)

# sorted by wnid, so that a class index is the rank of the folder name
MINI_CLASSES = (
    MiniClass("n90000101", "horse", _FEET),
    MiniClass("n90000102", "dog", _FEET),
    MiniClass("n90000103", "elephant", _FEET),
    MiniClass("n90000104", "giraffe", _FEET),
    MiniClass("n90000201", "songbird", _WING_TIPS),
    MiniClass("n90000202", "heron", _WING_TIPS),
    MiniClass("n90000301", "fish"),
    MiniClass("n90000302", "shark"),
    MiniClass("n90000401", "snake"),
    MiniClass("n90000402", "lizard", ((2, 3), (4, 5), (7, 8))),
    MiniClass("n90000501", "butterfly", ((0, 1), (2, 3), (6, 7))),
    MiniClass("n90000502", "beetle", ((0, 2), (1, 3), (4, 5), (8, 9))),
    MiniClass("n90000503", "dragonfly", ((1, 2), (3, 4), (6, 7))),
    MiniClass("n90000601", "car"),
    MiniClass("n90000602", "truck"),
    MiniClass("n90000603", "bicycle"),
    MiniClass("n90000604", "boat"),
    MiniClass("n90000605", "plane", ((1, 5),)),
    MiniClass("n90000701", "chair", ((0, 1), (2, 4), (3, 5), (6, 7))),
    MiniClass("n90000702", "lamp"),
    MiniClass("n90000703", "mug"),
    MiniClass("n90000801", "house", ((0, 1), (4, 5), (7, 8))),
    MiniClass("n90000802", "windmill", ((0, 1),)),
    MiniClass("n90000803", "tree", ((2, 3),)),
)

# imagenet
CLASSES = len(MINI_CLASSES)
TRAIN_PER_CLASS = 24
TRAIN = VAL = CLASSES * TRAIN_PER_CLASS

# roxford5k
QUERIES = 48
DATABASE = 222

# DAVIS; objects over all sequences
SEQUENCES = 6
FRAMES = 48
OBJECTS = 10

# SPair-71k
CATEGORIES = 8
PAIRS = 256

# coco
COCO_IMAGES = 48
COCO_CATEGORIES = 12

# PartImageNet
PART_IMAGES = 48
PART_CLASSES = 11
PART_SUPERCATEGORIES = 5
PART_CATEGORIES = 17

# VOC 2012
SCENES_TRAIN = 64
SCENES_VAL = 48
MEMORY = 4096

# MVTec AD
PRODUCTS = 4
REFERENCES = 64
INSPECTED = 112

# Stanford Online Products
THINGS = 40
THING_IMAGES = 160

# numbers, and several labels an image
TARGET_IMAGES = 192

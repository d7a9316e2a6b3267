"""How the mini suite's datasets are made up, beside the counts that the package states."""

from layerboard.mini.facts import *  # noqa: F403 - one name for both

MINI_VERSION = "2"  # changes whenever the pixels or annotations of a mini dataset would

VAL_PER_CLASS = 24

# roxford5k; PER_IDENTITY counts images
IDENTITIES = 12
QUERIES_PER_IDENTITY = 4
EASY_PER_IDENTITY = 5
HARD_PER_IDENTITY = 5
JUNK_PER_IDENTITY = 2
DISTRACTORS = 78

# DAVIS
FRAMES_PER_SEQUENCE = 8
FRAME_WIDTH = 192
FRAME_HEIGHT = 144

# SPair-71k
IMAGES_PER_CATEGORY = 8
PAIRS_PER_CATEGORY = 32
LEAST_POINTS = 3

# coco
COCO_CROWDS = 4

# MVTec AD
REFERENCES_PER_PRODUCT = 16
GOOD_PER_PRODUCT = 12
DEFECTIVE_PER_KIND = 4

# Stanford Online Products
THING_IMAGES_EACH = 4

"""A plugin of pytest: ``timm`` beside a torch without CUDA, whose torchvision was built for CUDA.

The package index has one build of torchvision for Linux, for CUDA. Beside a CPU build of torch its operators
do not load, and then importing it fails, and with it timm and all of transformers, for want of two
declarations. Nothing that the tests open calls these operators (suppression of overlapping boxes), so they
are declared without being defined.
"""

import sys
from importlib import import_module

from torch.library import Library

try:
    import_module("torchvision")
except RuntimeError:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]
    import_module("torchvision")

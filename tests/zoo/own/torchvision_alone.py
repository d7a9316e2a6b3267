"""A plugin of pytest: ``timm`` beside a torch without CUDA, whose torchvision was built for CUDA.

The package index has one build of torchvision for Linux, for CUDA. Beside a CPU build of torch its operators do not
load, and then importing it fails, and with it timm and all of transformers, for want of two declarations. Nothing that
the tests open calls these operators (suppression of overlapping boxes), so they are declared without being defined.
"""

import sys
from importlib import import_module

import torch

try:
    import_module("torchvision")
except RuntimeError:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import_module("torchvision")

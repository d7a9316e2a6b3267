"""What a process of a run does with a Python object, alone in a module that imports little."""

import torch

from benchmark.engines.progress import Reporter
from zoo.load.own import own_backbone
from zoo.spec import BackboneSpec


def means(spec: BackboneSpec, report: Reporter) -> list[float]:
    """Mean of each layer's features of one image."""
    found: list[float] = []
    pixels = (torch.arange(3 * 64 * 64) % 251).to(torch.uint8).view(1, 3, 64, 64)
    backbone = own_backbone(spec, torch.device("cpu"), torch.float32)
    backbone.visit(pixels, lambda features: found.append(float(features.grid.mean())))
    report.say(backbone.spec.name)
    return found

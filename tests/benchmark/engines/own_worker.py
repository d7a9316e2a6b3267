"""What workers of a run do in tests, alone in a module that imports little."""

import os
import signal
from pathlib import Path

import torch

from layerboard.benchmark.engines.progress import Reporter
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.spec import BackboneSpec


def means(spec: BackboneSpec, report: Reporter) -> list[float]:
    """Mean of each layer's features of one image."""
    found: list[float] = []
    pixels = (torch.arange(3 * 64 * 64) % 251).to(torch.uint8).view(1, 3, 64, 64)
    backbone = load_backbone(spec, device=torch.device("cpu"), cache_dir=Path())
    backbone.visit(pixels, lambda features: found.append(float(features.grid.mean())))
    report.say(backbone.spec.name)
    return found


def halved(number: int, report: Reporter) -> int:
    """Half of an even number; an odd one is refused, and the process dies of a negative one."""
    with report.bar(f"half of {number}", 1, "numbers") as advance:
        if number < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if number % 2:
            raise InputError(f"{number} is odd")
        advance(1)
    report.say(f"halved {number}")
    return number // 2


def niceness(added: int, report: Reporter) -> int:
    """How far the process stands back for others, after so much was added."""
    report.say("asked")
    return os.nice(added)

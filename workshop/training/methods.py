"""The seven objectives by name."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec
from workshop.training import beit, clip, dino, fs, mae, moco
from workshop.training.data import Pictures
from workshop.training.objective import Objective


@dataclass(frozen=True, slots=True)
class Method:
    """An objective with its numbers."""

    name: str  # the backbone is ``mini-<name>``
    recipe: Any  # every method's is of its own type
    make: Callable[[BackboneSpec, Any, Pictures, int], Objective]
    supervision: str  # what it learns from
    steps: int  # updates that the packaged weights had, of 64 images each

    def objective(self, spec: BackboneSpec, data: Pictures, seed: int) -> Objective:
        """The objective of an entry with fresh weights; the process's random state stays as it is.

        Raises InputError: the data or the recipe does not fit.
        """
        with torch.random.fork_rng(devices=[]):
            return self.make(spec, self.recipe, data, seed)

    def tuned(self, **changes: object) -> "Method":
        """The method with other numbers in its recipe; raises InputError (its recipe has no such number)."""
        for name in changes:
            if name not in {field.name for field in fields(self.recipe)}:
                raise InputError(
                    f"{self.name} has no option {name.replace('_', '-')!r}; leave it out, or train fs"
                )
        return replace(self, recipe=replace(self.recipe, **changes))


METHODS: tuple[Method, ...] = (
    Method("fs", fs.SupervisedRecipe(), fs.Supervised, "class labels", 3000),
    Method("clip", clip.ClipRecipe(), clip.ImageText, "captions", 3000),
    Method("dino", dino.DinoRecipe(), dino.SelfDistillation, "images alone", 20_000),
    Method("moco", moco.MocoRecipe(), moco.MomentumContrast, "images alone", 20_000),
    Method("mae", mae.MaeRecipe(), mae.MaskedAutoencoder, "images alone", 3500),
    Method("beit", beit.BeitRecipe(), beit.MaskedTokens, "images alone", 6000),
    Method("resnet", fs.ResNetRecipe(), fs.Supervised, "class labels", 4000),
)


def method(name: str) -> Method:
    """The method of that name; raises InputError (there is none)."""
    by_name = {each.name: each for each in METHODS}
    if name not in by_name:
        raise InputError(f"no objective is called {name!r}; there are {', '.join(by_name)}")
    return by_name[name]

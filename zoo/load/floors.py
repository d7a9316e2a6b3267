"""The untrained baselines, which are no networks: random draws and the pixels themselves."""

from pathlib import Path

import torch

from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.features.backbone import SEED, Backbone, RandomFloor, RawPixels
from layerboard.zoo.load.backbone import OriginLoader, identity_of
from layerboard.zoo.spec import BackboneSpec

# class and revision of each family of `zoo.spec.FLOORS`
FLOORS: dict[str, tuple[type[Backbone], str]] = {
    "random": (RandomFloor, f"seed-{SEED}"),
    "pixels": (RawPixels, "pixels"),
}


class FloorLoader(OriginLoader):
    """Loader of the floors, which need no files."""

    def identify(self, spec: BackboneSpec, cache_dir: Path) -> BackboneIdentity:
        del cache_dir
        return identity_of(spec, FLOORS[spec.family][1])

    def load(self, spec: BackboneSpec, device: torch.device, cache_dir: Path) -> Backbone:
        return FLOORS[spec.family][0](spec, self.identify(spec, cache_dir), device)

"""Loading a backbone, wherever it comes from; the loaders that do it are named in `zoo.spec.origin`."""

import hashlib
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path

import torch

from layerboard.zoo.entries import SPECS
from layerboard.zoo.errors import InputError, ensure
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.features.backbone import SEED, Backbone, RandomFloor, RawPixels
from layerboard.zoo.features.pass_context import pass_context
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.spec.origin import Origin

FORMAT = 1  # version of the meaning of features: raise it when a code change alters them
_KNOWN = {name for spec in SPECS for name in (spec.repository, spec.name)}


class OriginLoader(ABC):
    """What an `Origin` does with heavy libraries: it finds, identifies, loads and describes its backbones."""

    def find(self, text: str, cache_dir: Path | None) -> BackboneSpec:
        """The backbone that a user named so; raises InputError if there is none.

        Nothing is downloaded if ``cache_dir`` is None.
        """
        raise InputError(f"No backbone is called '{text}'; `layerboard list backbones` has all.")

    @abstractmethod
    def identify(self, spec: BackboneSpec, cache_dir: Path) -> BackboneIdentity:
        """The identity of a backbone, from its files alone; raises InputError as `identify` does."""

    @abstractmethod
    def load(self, spec: BackboneSpec, device: torch.device, cache_dir: Path) -> Backbone:
        """The backbone on a device that is there; raises InputError as `load_backbone` does."""

    def describe(self, spec: BackboneSpec, cache_dir: Path | None) -> str:
        """What `describe_backbone` says of a backbone that `find` gave."""
        del spec, cache_dir
        return ""


class FloorLoader(OriginLoader):
    """Loader of the floors, which are no networks and need no files: random draws, and the pixels."""

    def identify(self, spec: BackboneSpec, cache_dir: Path) -> BackboneIdentity:
        return identity_of(spec, f"seed-{SEED}" if spec.family == "random" else "pixels")

    def load(self, spec: BackboneSpec, device: torch.device, cache_dir: Path) -> Backbone:
        kind = RandomFloor if spec.family == "random" else RawPixels
        return kind(spec, self.identify(spec, cache_dir), device)


def loader_of(origin: Origin) -> OriginLoader:
    """The other half of an origin, which imports what it needs."""
    module, _, name = origin.loader.partition(":")
    loader: OriginLoader = getattr(import_module(module), name)()
    return loader


@pass_context()
def load_backbone(spec: BackboneSpec, *, device: torch.device, cache_dir: Path) -> Backbone:
    """The backbone of an entry of `zoo.registry.find`, ready to be visited.

    Downloads and generated weights are kept in ``cache_dir``. Raises InputError if the files are unavailable,
    damaged, or do not match the entry, or if there is no such device.
    """
    ensure(device.type != "cuda" or torch.cuda.is_available(), "There is no CUDA device; use --device cpu.")
    return loader_of(spec.origin).load(spec, device, cache_dir)


def identify(spec: BackboneSpec, *, cache_dir: Path) -> BackboneIdentity:
    """The identity of a backbone, from its files alone.

    Raises InputError if they are unavailable, or if a user's file holds no such network.
    """
    return loader_of(spec.origin).identify(spec, cache_dir)


def describe_backbone(spec: BackboneSpec, cache_dir: Path | None) -> str:
    """What was inferred about a backbone outside the registry, and the source of each fact.

    Of a file of weights, which of several networks in it is taken. "" for one about which the user has been
    told, and for other backbones of the registry.
    """
    is_known = spec.repository in _KNOWN or (spec.entry in _KNOWN and not spec.is_file)
    return "" if is_known else loader_of(spec.origin).describe(spec, cache_dir)


def identity_of(spec: BackboneSpec, revision: str, sha256: str = "") -> BackboneIdentity:
    """The identity of a backbone whose revision is known, and the digest of its weights if it has files."""
    is_hub = not revision.startswith(("sha256:", "seed-", "pixels"))
    facts: tuple[object, ...] = (
        *(FORMAT, spec.repository if is_hub else spec.family, revision, f"torch.{spec.dtype}"),
        *(spec.stages, spec.heads),
        *(spec.prefix_tokens, spec.has_cls, spec.mean, spec.std),
        *((spec.interpolation,) if spec.interpolation != "huggingface" else ()),
        # of two networks in one file, the entry decides which is taken
        *((spec.network,) if spec.network and not is_hub else ()),
    )
    return BackboneIdentity(revision, hashlib.sha256(repr(facts).encode()).hexdigest()[:20], sha256)

"""Backbones of files: of the Hub, of a user, and those that come with this package or are written by it.

transformers, whose import takes seconds, is imported to find and load a backbone, not to identify one: a run
that has all features needs none.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.hooked import HookedBackbone, Network
from layerboard.zoo.load.backbone import OriginLoader, identity_of
from layerboard.zoo.load.checkpoint import (
    Checkpoint,
    files_digest,
    in_directory,
    of_user,
    read_weights,
    weights_sha256,
)
from layerboard.zoo.load.described import images_in_words, shape_in_words, titled
from layerboard.zoo.load.hub import fetch
from layerboard.zoo.load.networks import LAYOUTS, Names, choice_in_words, networks_of
from layerboard.zoo.references import PART, find_object, is_local, split_part
from layerboard.zoo.spec import BackboneSpec, Layer, WeightFile


class FileLoader(OriginLoader):
    """Loader of networks of a known architecture, from files of weights."""

    def find(self, text: str, cache_dir: Path | None) -> BackboneSpec:
        from layerboard.zoo.load.infer import infer

        repository, _, revision = (text, "", "") if is_local(text) else text.partition("@")
        return infer(repository, revision or None, cache_dir)

    def identify(self, spec: BackboneSpec, cache_dir: Path) -> BackboneIdentity:
        checkpoint = locate(spec, cache_dir)
        if split_part(spec.repository)[0].exists():  # a user's own, which may be of another network
            self.require_fit(spec, checkpoint)
        return identity_of(spec, checkpoint.revision, weights_sha256(checkpoint.weights))

    def load(self, spec: BackboneSpec, device: torch.device, cache_dir: Path) -> Backbone:
        checkpoint = locate(spec, cache_dir)
        identity = identity_of(spec, checkpoint.revision, weights_sha256(checkpoint.weights))
        return HookedBackbone(spec, self.network(spec, checkpoint), identity, device)

    def describe(self, spec: BackboneSpec, cache_dir: Path | None) -> str:
        from layerboard.zoo.load.processor import said_normalisation

        if spec.is_file and not spec.path:
            return self.choice(spec)
        path, _ = split_part(spec.repository)  # of a damaged file, more is said when it is identified
        checkpoint = of_user(path) if spec.path else locate(spec, cache_dir)
        said, words = said_normalisation(checkpoint)
        source = words if said else f"what is usual for the {spec.paper}, since {words}"
        facts = f"{shape_in_words(spec)}, from config.json ({spec.paper})"
        return f"{titled(spec)}: {facts}; {images_in_words(spec)} from {source}"

    def choice(self, spec: BackboneSpec) -> str:
        """The network that is taken of several in a file, and how to have another; "" for one alone."""
        file, part = split_part(spec.repository)
        if part or not file.is_file():
            return ""
        try:
            return choice_in_words(networks_of(read_weights((file,)), self.layouts(spec)), spec)
        except InputError:
            return ""  # said when the backbone is identified

    def network(self, spec: BackboneSpec, checkpoint: Checkpoint) -> Network:
        """The network with the weights of a checkpoint; raises InputError if they are others'."""
        from layerboard.zoo.load.adapters import use_rule
        from layerboard.zoo.load.network import build_network

        network = build_network(spec, checkpoint)
        use_rule(network.body, spec.stage_of(Layer(0)).stride, spec.interpolation)
        return network

    def require_fit(self, spec: BackboneSpec, checkpoint: Checkpoint) -> None:
        """Raise InputError if a checkpoint holds no such network."""
        from layerboard.zoo.load.network import read_network_of

        read_network_of(spec, checkpoint)

    def layouts(self, spec: BackboneSpec) -> tuple[Names, ...]:
        """Names of tensors by which the network is found in a file."""
        del spec
        return LAYOUTS


def locate(spec: BackboneSpec, cache_dir: Path | None) -> Checkpoint:
    """Files of a backbone, fetched or generated if needed.

    Raises InputError if they are unavailable, or are not those that were published, as far as that is known.
    """
    checkpoint = _located(spec, cache_dir)
    is_published = bool(spec.original) or not split_part(spec.repository)[0].exists()
    if is_published and (change := _change(spec.file, checkpoint.weights)):
        other = "rename it if it is your own" if spec.original else f"name {spec.entry}@REVISION for another"
        raise InputError(f"{spec.name}: {change} ({spec.file.source}); fetch it again, or {other}.")
    return checkpoint


def _change(published: WeightFile, weights: Sequence[Path]) -> str:
    """How files differ from what was published, as a phrase; "" if they do not, or if nobody knows."""
    same = [path for path in weights if published.name in ("", path.name)]
    size = sum(path.stat().st_size for path in same)
    if same and published.size not in (None, size):
        return f"{same[0].name} has {size:,} bytes, and was published with {published.size:,}"
    if same and published.name and published.sha256:
        digest = weights_sha256(same)
        if not digest.startswith(published.sha256):
            return f"{same[0].name} has the SHA-256 {digest}, and was published with {published.sha256}"
    return ""


def _located(spec: BackboneSpec, cache_dir: Path | None) -> Checkpoint:
    if spec.origin.supply:
        directory_of = find_object(spec.repository)
        assert callable(directory_of)
        return in_directory(*directory_of(spec, cache_dir))
    if not spec.repository:
        raise InputError(
            f"{spec.name} has weights in no repository of the Hub that can be read; fetch {spec.original} "
            f"and give the file: --weights {spec.entry}=FILE."
        )
    local, part = split_part(spec.repository)
    if not local.exists():
        return fetch(spec.repository, spec.revision, cache_dir)
    checkpoint = of_user(local)
    if local.is_file() and checkpoint.config and networks_of(read_weights((local,))):
        # as the authors of MoCo-v3 and MAE publish it, whatever lies beside it
        checkpoint = replace(checkpoint, config=None, revision=files_digest((local,)))
    if not part:
        return checkpoint
    return replace(checkpoint, part=part, revision=f"{checkpoint.revision}{PART}{part}")

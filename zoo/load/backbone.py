"""Loading a backbone: an entry of the registry, a checkpoint, or a user's own object."""

import hashlib
from dataclasses import replace
from pathlib import Path

import torch

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.features.backbone import SEED, Backbone, RandomFloor, RawPixels
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.adapters import use_rule
from layerboard.zoo.load.checkpoint import Checkpoint, files_digest, in_directory, of_user, read_weights
from layerboard.zoo.load.hub import fetch
from layerboard.zoo.load.module.network import given
from layerboard.zoo.load.network import build_network, read_network_of
from layerboard.zoo.load.networks import LAYOUTS, choice_in_words, networks_of
from layerboard.zoo.load.own import identity_of_own, make_own, own_backbone
from layerboard.zoo.load.timm_models import load_timm, timm_layout, timm_network
from layerboard.zoo.references import PART, find_object, split_part
from layerboard.zoo.spec import BackboneSpec, Layer

FORMAT = 1  # version of the meaning of features: raise it when a code change alters them
# class and revision of each family of `zoo.spec.FLOORS`
FLOORS: dict[str, tuple[type[Backbone], str]] = {
    "random": (RandomFloor, f"seed-{SEED}"),
    "pixels": (RawPixels, "pixels"),
}


def load_backbone(spec: BackboneSpec, *, device: torch.device, cache_dir: Path) -> Backbone:
    """The backbone of an entry of `zoo.registry.find`, ready to be visited.

    Downloads and generated weights are kept in ``cache_dir``. Raises InputError if the files are unavailable,
    damaged, or do not match the entry, or if there is no such device.
    """
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("There is no CUDA device; use --device cpu.")
    if spec.is_floor:
        floor, revision = FLOORS[spec.family]
        return floor(spec, identity_of(spec, revision), device)
    if spec.checkpoint == "object":
        return own_backbone(spec, device)
    if spec.checkpoint == "module":
        copy = given(spec.repository)
        return HookedBackbone(spec, copy.network(), identity_of(spec, copy.revision), device)
    checkpoint = locate(spec, cache_dir)
    if spec.checkpoint == "timm":
        network = timm_network(spec.entry).network(load_timm(spec, checkpoint))
    else:
        network = build_network(spec, checkpoint)
        use_rule(network.body, spec.stage_of(Layer(0)).stride, spec.interpolation)
    return HookedBackbone(spec, network, identity_of(spec, checkpoint.revision), device)


def identify(spec: BackboneSpec, *, cache_dir: Path) -> BackboneIdentity:
    """The identity of a backbone, from its files alone.

    Raises InputError if they are unavailable, or if a user's file holds no such network.
    """
    if spec.is_floor:
        return identity_of(spec, FLOORS[spec.family][1])
    if spec.checkpoint == "object":
        return identity_of_own(spec.repository, make_own(spec.repository))
    if spec.checkpoint == "module":
        return identity_of(spec, given(spec.repository).revision)
    checkpoint = locate(spec, cache_dir)
    if is_users(spec) and spec.checkpoint != "timm":
        read_network_of(spec, checkpoint)
    return identity_of(spec, checkpoint.revision)


def is_users(spec: BackboneSpec) -> bool:
    """Whether the weights are in a file or a directory of this machine that a user named."""
    return split_part(spec.repository)[0].exists()


def networks_in_words(spec: BackboneSpec) -> str:
    """A line about the network that is taken from a user's file of several; "" if there is no choice."""
    file, part = split_part(spec.repository)
    if part or not file.is_file():
        return ""
    try:
        layouts = (timm_layout(spec.entry),) if spec.checkpoint == "timm" else LAYOUTS
        return choice_in_words(networks_of(read_weights((file,)), layouts), spec)
    except InputError:
        return ""  # said when the backbone is identified


def identity_of(spec: BackboneSpec, revision: str) -> BackboneIdentity:
    """The identity of a backbone whose revision is known."""
    is_hub = not revision.startswith(("sha256:", "seed-", "pixels"))
    facts: tuple[object, ...] = (
        *(FORMAT, spec.repository if is_hub else spec.family, revision, f"torch.{spec.dtype}"),
        *(spec.stages, spec.heads),
        *(spec.prefix_tokens, spec.has_cls, spec.mean, spec.std),
        *((spec.interpolation,) if spec.interpolation != "huggingface" else ()),
        # of two networks in one file, the entry decides which is taken
        *((spec.network,) if spec.network and not is_hub else ()),
    )
    return BackboneIdentity(revision, hashlib.sha256(repr(facts).encode()).hexdigest()[:20])


def locate(spec: BackboneSpec, cache_dir: Path | None) -> Checkpoint:
    """Files of a backbone, fetched or generated if needed; raises InputError if they are unavailable."""
    if spec.checkpoint in ("packaged", "generated"):
        directory_of = find_object(spec.repository)
        assert callable(directory_of)
        return in_directory(*directory_of(spec, cache_dir))
    if not spec.repository:
        raise InputError(
            f"{spec.name} has weights in no repository of the Hub that can be read; fetch {spec.original} "
            f"and give the file: --weights {spec.entry}=FILE."
        )
    local, part = split_part(spec.repository)
    if local.is_file():  # as the authors of MoCo-v3 and MAE publish it
        checkpoint = Checkpoint((local,), None, None, files_digest((local,)))
    elif local.is_dir():
        checkpoint = of_user(local)
    else:
        return fetch(spec.repository, spec.revision, cache_dir)
    if not part:
        return checkpoint
    return replace(checkpoint, part=part, revision=f"{checkpoint.revision}{PART}{part}")

"""Loads a backbone: an entry of the registry, a checkpoint, or somebody's own object."""

from pathlib import Path

import torch

from zoo.errors import InputError
from zoo.features import Backbone
from zoo.load.identity import identify, identity_of, locate
from zoo.load.module.network import given
from zoo.load.network import build_network
from zoo.load.own import own_backbone
from zoo.load.positions import use_rule
from zoo.load.timm_models import timm_backbone
from zoo.look.backbone import HookedBackbone
from zoo.look.random_floor import RandomFloor
from zoo.spec import BackboneSpec, Layer


def load(spec: BackboneSpec, *, device: torch.device, dtype: torch.dtype, cache_dir: Path) -> Backbone:
    """A backbone, ready to be visited.

    Args:
        spec: Entry of the registry, or what `zoo.load.infer.infer` made of a Hub id or directory.
        device: Where the forward runs.
        dtype: Type of weights and activations.
        cache_dir: Where downloads and generated weights are kept.

    Raises:
        InputError: The files cannot be had, are damaged, or are not what the entry says; no such device.
    """
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("There is no CUDA device; use --device cpu.")
    if spec.is_floor:
        floor = identify(spec, dtype=dtype, cache_dir=cache_dir)
        return RandomFloor(spec, floor.revision, floor.fingerprint, device, dtype)
    if spec.checkpoint == "object":
        return own_backbone(spec, device, dtype)
    if spec.checkpoint == "module":
        identity = identify(spec, dtype=dtype, cache_dir=cache_dir)
        return given(spec.repository).backbone(spec, identity, device, dtype)
    checkpoint = locate(spec, cache_dir)
    identity = identity_of(spec, checkpoint.revision, dtype)
    if spec.checkpoint == "timm":
        return timm_backbone(spec, checkpoint.weights, identity, device, dtype)
    network = build_network(spec, checkpoint)
    use_rule(network.body, spec.stage_of(Layer(0)).stride, spec.interpolation)
    return HookedBackbone(spec, network, identity, device, dtype)

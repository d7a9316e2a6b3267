"""Builds the network of a backbone from its files, with every weight accounted for."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from zoo.errors import InputError
from zoo.load.adapters import MapNorm, adapt
from zoo.load.agreement import check_count, check_facts, check_finite, check_kind, check_real
from zoo.load.architecture import ARCHITECTURES, NEVER_NEEDED, Architecture
from zoo.load.checkpoint import Checkpoint, read_json, read_weights
from zoo.load.convert import convert, has_names_of_transformers, kind_of, told_heads, unwrap
from zoo.load.facts import read_facts, read_network
from zoo.load.quiet import quiet
from zoo.look.layout import Layout, LayoutSplit
from zoo.look.network import Network, Split
from zoo.look.sublayers import RESIDUALS, SUBLAYERS
from zoo.look.units import unit_features
from zoo.spec import BackboneSpec

_CELLS: Layout = "cells"


def build_network(spec: BackboneSpec, checkpoint: Checkpoint) -> Network:
    """The network of an entry in evaluation mode, float32 on the CPU.

    Raises:
        InputError: A file is damaged, a weight is missing or left over, or the entry says something else.
    """
    architecture, config, tensors = _read(spec, checkpoint)
    model = _fill(spec, architecture, config, tensors).requires_grad_(False).train(False)
    blocks = tuple(_blocks(model, architecture.blocks))
    adapt(model, blocks)
    body = model.get_submodule(architecture.body)
    norm = _final_norm(model, architecture) if spec.has_final else None
    read = {id(weight): weight.numel() for part in (body, norm) if part for weight in part.parameters()}
    check_count(spec, sum(read.values()))
    return Network(
        body=body,
        blocks=blocks,
        final_norm=norm,
        interpolates=architecture.interpolates,
        convolutional=architecture.convolutional,
        split=_split(architecture, len(blocks)),
        parts=SUBLAYERS.get(architecture.model_type) or RESIDUALS.get(architecture.model_type),
    )


def _split(architecture: Architecture, depth: int) -> Split | None:
    """How layers become features where they are neither tokens row by row nor feature maps."""
    if architecture.units:
        return unit_features
    return LayoutSplit((_CELLS,) * (depth + 1)) if architecture.cells else None


def _read(
    spec: BackboneSpec, checkpoint: Checkpoint
) -> tuple[Architecture, PreTrainedConfig, dict[str, Tensor]]:
    """Architecture, configuration and tensors of a checkpoint, in agreement with its entry.

    A configuration of transformers says what network the tensors belong to; elsewhere their names do.
    """
    values = {} if checkpoint.config is None else read_json(checkpoint.config)
    tensors: dict[str, Tensor] = {}
    if "model_type" not in values:
        tensors = unwrap(read_weights(checkpoint.weights), spec)
    if checkpoint.config is not None and (not tensors or has_names_of_transformers(tensors)):
        architecture, config, facts = read_network(values, checkpoint.config)
        check_kind(spec, architecture.model_type)
        check_facts(spec, facts)
        found = read_weights(checkpoint.weights)
        named = {name: t for name, t in found.items() if isinstance(name, str) and isinstance(t, Tensor)}
        return architecture, config, named
    if has_names_of_transformers(tensors):
        raise InputError(
            f"{spec.name}: there is no config.json beside {checkpoint.weights[0]}, whose tensors have "
            "names of transformers; give a directory that has both."
        )
    converted = convert(tensors, spec)
    architecture = _architecture_of(converted.config)
    facts = read_facts(architecture, converted.config)
    check_kind(spec, kind_of(tensors, converted))
    check_facts(spec, replace(facts, heads=told_heads(values) or facts.heads))
    return architecture, converted.config, converted.tensors


def _architecture_of(config: PreTrainedConfig) -> Architecture:
    """The architecture of a converted network, which is never one of a class of checkpoints."""
    return next(
        entry
        for entry in ARCHITECTURES
        if entry.model_type == config.model_type and entry.checkpoint_class is None
    )


def _final_norm(model: nn.Module, architecture: Architecture) -> nn.Module:
    norm = model.get_submodule(architecture.final_norm or "")
    return MapNorm(norm) if architecture.convolutional and isinstance(norm, nn.LayerNorm) else norm


def _blocks(model: nn.Module, path: str) -> Iterator[nn.Module]:
    head, _, tail = path.partition(".*.")
    if tail:
        for stage in model.get_submodule(head).children():
            yield from stage.get_submodule(tail).children()
    else:
        yield from model.get_submodule(head).children()


def _fill(
    spec: BackboneSpec, architecture: Architecture, config: PreTrainedConfig, tensors: Mapping[str, Tensor]
) -> PreTrainedModel:
    """The model with the tensors in it; transformers itself renames those of older layouts."""
    options: dict[str, Any] = {"add_pooling_layer": False} if architecture.pooling_option else {}
    model: PreTrainedModel
    check_real(spec, {key: tensors[key] for key in _needed(tensors, (*NEVER_NEEDED, *architecture.unused))})
    with quiet():
        try:
            loaded: Any = architecture.model.from_pretrained(
                None,
                config=config,
                state_dict=dict(tensors),
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **options,
            )
        except (RuntimeError, ValueError, LookupError) as error:
            raise InputError(f"{spec.name}: the weights of {spec.repository} do not load: {error}") from error
    model, report = loaded
    missing = _needed(report["missing_keys"], NEVER_NEEDED)
    unknown = _needed(report["unexpected_keys"], (*NEVER_NEEDED, *architecture.unused))
    misfits = sorted(
        f"{key} {list(found)} for {list(want)}" for key, found, want in report["mismatched_keys"]
    )
    for verb, names in (("lack", missing), ("have unknown", unknown), ("have misshapen", misfits)):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise InputError(
                f"{spec.name}: the weights of {spec.repository} {verb} tensors of a {config.model_type} "
                f"network: {', '.join(names[:3])}{more}."
            )
    state = model.state_dict()
    check_finite(spec, {key: state[key] for key in _needed(state, NEVER_NEEDED)})
    return model


def _needed(keys: Iterable[str], patterns: tuple[str, ...]) -> list[str]:
    return sorted(key for key in keys if not any(re.search(pattern, key) for pattern in patterns))

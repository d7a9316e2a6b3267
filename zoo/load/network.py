"""Builds the network of a backbone from its files, with every weight accounted for."""

from collections.abc import Collection
from dataclasses import replace
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from layerboard.zoo.entries import ARCHITECTURES
from layerboard.zoo.entries.architecture import HEADS, Architecture
from layerboard.zoo.errors import InputError, first_line, some
from layerboard.zoo.features.hooked import Network
from layerboard.zoo.features.weights import are_zero
from layerboard.zoo.load.adapters import MapNorm, adapt
from layerboard.zoo.load.checkpoint import OPEN_CLIP, Checkpoint, read_network_json, read_weights
from layerboard.zoo.load.config import check_facts, model_class, read_network, spec_from_config
from layerboard.zoo.load.convert import CONVERTED, convert, stated_activation, stated_heads
from layerboard.zoo.load.hub import quiet
from layerboard.zoo.load.networks import has_names_of_transformers, of_transformers, unwrap
from layerboard.zoo.load.renaming import Tensors, needed
from layerboard.zoo.spec import BackboneSpec

# Patterns of keys that no feature depends on, whether a checkpoint has them or not.
NEVER_NEEDED = (
    HEADS,
    r"^(pooler|.*\.pooler)\.",
    r"(^|\.)(position_ids|relative_position_index|relative_coords_table|mask_token|num_batches_tracked)$",
)
_COUNT_TOLERANCE = 0.1


def build_network(spec: BackboneSpec, checkpoint: Checkpoint) -> Network:
    """The network of an entry in evaluation mode, float32 on the CPU."""
    architecture, config, tensors = read_network_of(spec, checkpoint)
    model = _fill(spec, architecture, config, tensors).requires_grad_(False).train(False)
    head, _, tail = architecture.blocks.partition(".*.")
    rows = [stage.get_submodule(tail) for stage in model.get_submodule(head).children()] if tail else []
    blocks = tuple(block for row in rows or [model.get_submodule(head)] for block in row.children())
    adapt(model, blocks)
    body = model.get_submodule(architecture.body)
    norm: nn.Module | None = None
    if spec.has_final:
        norm = model.get_submodule(architecture.final_norm or "")
        if architecture.layout == "maps" and isinstance(norm, nn.LayerNorm):
            norm = MapNorm(norm)
    weights = {id(weight): weight.numel() for part in (body, norm) if part for weight in part.parameters()}
    check_count(spec, sum(weights.values()))
    layouts = (architecture.layout,) * (len(blocks) + 1)
    can_ask = "interpolate_pos_encoding" in signature(body.forward).parameters
    return Network(body, blocks, norm, layouts, architecture.interpolates and can_ask, architecture.parts)


def read_network_of(
    spec: BackboneSpec, checkpoint: Checkpoint
) -> tuple[Architecture, PreTrainedConfig, dict[str, Tensor]]:
    """Architecture, configuration and tensors of a checkpoint; InputError if they do not fit the entry.

    They are read by its ``config.json`` or, if that is not transformers', by the names of its tensors.
    """
    values = {} if checkpoint.config is None else read_network_json(checkpoint.config, dict[str, Any])
    content: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    is_described = "model_type" in values or "architectures" in values  # RADIO's authors have the latter
    if not is_described and spec.model_types and CONVERTED.isdisjoint(spec.model_types):
        raise InputError(
            f"{spec.name}: this entry is read from a directory in Hugging Face format, config.json beside "
            f"model.safetensors; {checkpoint.weights[0]} is in another format: give such a directory, or "
            "leave out --weights to use the Hub's."
        )
    if "model_type" not in values:
        content = read_weights(checkpoint.weights)
        tensors = unwrap(content, spec, checkpoint.part)
    if checkpoint.config is not None and (not tensors or has_names_of_transformers(tensors)):
        architecture, config, facts = read_network(values, checkpoint.config)
        _check_kind(spec, architecture.model_type)
        check_facts(spec, facts)
        named = of_transformers(read_weights(checkpoint.weights), spec, checkpoint.part)
        return architecture, config, named
    if has_names_of_transformers(tensors):
        raise InputError(
            f"{spec.name}: there is no config.json beside {checkpoint.weights[0]}, whose tensors have "
            "names of transformers; give a directory that has both."
        )
    paths = [each for each in checkpoint.preprocessors if each.name == OPEN_CLIP]
    described = read_network_json(paths[0], dict[str, Any]) if paths else None
    config, converted = convert(tensors, spec, stated_activation(content, described))
    kind = config.model_type
    architecture = next(entry for entry in ARCHITECTURES if entry.model_type == kind and not entry.is_named)
    facts = spec_from_config(architecture, config)
    # an MAE is recognised by its decoder, which conversion drops
    _check_kind(spec, "vit_mae" if any(name.startswith("decoder_") for name in tensors) else kind)
    check_facts(spec, replace(facts, heads=stated_heads(values) or facts.heads))
    return architecture, config, converted


def _check_kind(spec: BackboneSpec, kind: str) -> None:
    # networks of two types may agree in every shape; then only the type distinguishes them
    if spec.model_types and kind not in spec.model_types:
        raise InputError(
            f"{spec.name}: the checkpoint {spec.repository} is of another architecture than the entry: its "
            f"type is {kind}, not {' or '.join(spec.model_types)}; give the file of {spec.name}."
        )


def check_count(spec: BackboneSpec, count: int) -> None:
    """Raise InputError if the number of weights differs from that of the entry by more than a tenth.

    Sizes of one family may agree in everything else: a gated MLP has half as many weights again as a plain
    one. A position table of another size, or an additional bias, is less than a tenth of a network.
    """
    if spec.parameters and abs(count - spec.parameters) > _COUNT_TOLERANCE * spec.parameters:
        raise InputError(
            f"{spec.name}: the checkpoint {spec.repository} differs from the entry: weights: {count:,}, not "
            f"{spec.parameters:,}."
        )


def _fill(
    spec: BackboneSpec, architecture: Architecture, config: PreTrainedConfig, tensors: Tensors
) -> PreTrainedModel:
    """The model with the tensors in it; transformers itself renames those of older layouts."""
    unused = (*NEVER_NEEDED, *architecture.unused)
    _require_floats(spec, tensors, unused)
    network = model_class(architecture)
    pools = "add_pooling_layer" in signature(network).parameters
    options: dict[str, Any] = {"add_pooling_layer": False} if pools else {}
    with quiet():
        try:
            loaded: Any = network.from_pretrained(
                None,
                config=config,
                state_dict=dict(tensors),
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **options,
            )
        except (RuntimeError, ValueError, LookupError) as error:
            raise InputError(
                f"{spec.name}: the weights of {spec.repository} do not load: {first_line(error)}"
            ) from error
    model: PreTrainedModel
    model, report = loaded
    misfits = [f"{key} {list(has)} for {list(want)}" for key, has, want in report["mismatched_keys"]]
    for verb, names in (
        ("lack", needed(report["missing_keys"], NEVER_NEEDED)),
        ("have unknown", needed(report["unexpected_keys"], unused)),
        ("have misshapen", misfits),
    ):
        if names:
            raise InputError(
                f"{spec.name}: the weights of {spec.repository} {verb} tensors of a {config.model_type} "
                f"network: {some(sorted(names))}{_prefixed(tensors)}."
            )
    _require_trained(spec, model.state_dict())
    return model


def _require_floats(spec: BackboneSpec, tensors: Tensors, unused: Collection[str]) -> None:
    """Raise InputError for tensors of a checkpoint that are needed and hold no floating-point numbers."""
    for name in needed(tensors, unused):
        if not tensors[name].is_floating_point():
            kind = str(tensors[name].dtype).removeprefix("torch.")
            raise InputError(
                f"{spec.name}: the weights of {spec.repository} should be floating-point numbers; {name} "
                f"holds {kind}; give the checkpoint as it was trained, not quantised."
            )


def _require_trained(spec: BackboneSpec, state: Tensors) -> None:
    """Raise InputError for weights of a model that are all zero, or not finite."""
    if are_zero(state.values()):
        raise InputError(f"{spec.name}: all weights in {spec.repository} are zero; give a trained network's.")
    for name in needed(state, NEVER_NEEDED):
        if state[name].is_floating_point() and not bool(torch.isfinite(state[name]).all()):
            raise InputError(
                f"{spec.name}: the weights of {spec.repository} should be finite; {name} holds a NaN or an "
                "infinity; fetch the file again, or give another checkpoint."
            )


def _prefixed(tensors: Tensors) -> str:
    """How to take off what stands before all names of tensors; "" if that is nothing."""
    firsts = {name.partition(".")[0] for name in needed(tensors, (HEADS,))}
    if len(firsts) != 1 or not has_names_of_transformers(tensors):
        return ""
    prefix = f"{firsts.pop()}."
    return (
        f"; all its names begin with {prefix!r}; take it off: "
        f"save_file({{name.removeprefix({prefix!r}): t for name, t in load_file(FILE).items()}}, FILE)"
    )

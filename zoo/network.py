"""Builds the network of a backbone from its files, with every weight accounted for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from zoo.architecture import ARCHITECTURES, NEVER_NEEDED, Architecture
from zoo.checkpoint import Checkpoint, read_json, read_weights
from zoo.convert import convert, unwrap
from zoo.errors import InputError
from zoo.facts import Facts, read_config, read_facts
from zoo.quiet import quiet
from zoo.spec import BackboneSpec


@dataclass(frozen=True, slots=True)
class Network:
    """A network and where to look into it.

    Attributes:
        body: Module whose forward runs all blocks.
        blocks: Its residual blocks, first to last.
        final_norm: Norm after the last block; None where there is none.
        interpolates: Whether the forward must be asked to fit position embeddings to the image.
        convolutional: Whether blocks give feature maps instead of tokens.
    """

    body: nn.Module
    blocks: tuple[nn.Module, ...]
    final_norm: nn.Module | None
    interpolates: bool
    convolutional: bool


def build_network(spec: BackboneSpec, checkpoint: Checkpoint) -> Network:
    """The network of an entry in evaluation mode, float32 on the CPU.

    Raises:
        InputError: A file is damaged, a weight is missing or left over, or the entry says something else.
    """
    if spec.checkpoint == "timm":
        _check_timm_heads(spec, checkpoint)
        config: PreTrainedConfig
        architecture = next(entry for entry in ARCHITECTURES if entry.model_type == "vit")
        config, tensors = convert(unwrap(read_weights(checkpoint.weights)), spec)
        _check(spec, read_facts(architecture, config))
    else:
        if checkpoint.config is None:
            raise InputError(f"{spec.name}: there is no config.json beside {checkpoint.weights[0]}.")
        architecture, config = read_config(read_json(checkpoint.config), checkpoint.config)
        _check(spec, read_facts(architecture, config))
        tensors = read_weights(checkpoint.weights)
    model = _fill(spec, architecture, config, tensors).requires_grad_(False).train(False)
    return Network(
        body=model.get_submodule(architecture.body),
        blocks=tuple(_blocks(model, architecture.blocks)),
        final_norm=model.get_submodule(architecture.final_norm or "") if spec.has_final else None,
        interpolates=architecture.interpolates,
        convolutional=architecture.convolutional,
    )


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
        except (RuntimeError, ValueError) as error:
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
    return model


def _needed(keys: set[str], patterns: tuple[str, ...]) -> list[str]:
    return sorted(key for key in keys if not any(re.search(pattern, key) for pattern in patterns))


def _check(spec: BackboneSpec, facts: Facts) -> None:
    """Compare an entry with what the checkpoint says.

    Raises:
        InputError: They differ.
    """
    pairs = {
        "stages (blocks, width, stride)": (_numbers(spec), _numbers(facts)),
        "attention heads": (spec.heads, facts.heads),
        "prefix tokens": (spec.prefix_tokens, facts.prefix_tokens),
        "a class token": (spec.has_cls, facts.has_cls),
        "a final norm": (spec.has_final, facts.has_final),
        "channels of the stem": (spec.stem_width or spec.stages[0].width, facts.stem_width),
    }
    differences = [f"{what}: {found}, not {said}" for what, (said, found) in pairs.items() if said != found]
    if differences:
        raise InputError(
            f"{spec.name}: the checkpoint {spec.repository} differs from the entry: {'; '.join(differences)}."
        )


def _numbers(holder: BackboneSpec | Facts) -> list[tuple[int, int, int]]:
    return [(stage.blocks, stage.width, stage.stride) for stage in holder.stages]


def _check_timm_heads(spec: BackboneSpec, checkpoint: Checkpoint) -> None:
    """Compare the heads with timm's configuration, where that names them: tensors of any number fit."""
    if checkpoint.config is None:
        return
    values = read_json(checkpoint.config)
    arguments = values.get("model_args")
    heads = values.get("num_heads") or (arguments.get("num_heads") if isinstance(arguments, dict) else None)
    if heads is not None and heads != spec.heads:
        raise InputError(
            f"{spec.name}: the checkpoint {spec.repository} has {heads} attention heads, not {spec.heads}."
        )

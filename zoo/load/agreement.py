"""What a checkpoint must have in common with its entry, and what its numbers must be."""

from collections.abc import Mapping

import torch
from torch import Tensor

from zoo.errors import InputError
from zoo.load.facts import Facts
from zoo.spec import BackboneSpec

_TOLERANCE = 0.1


def check_kind(spec: BackboneSpec, kind: str) -> None:
    """Compare the model type of a checkpoint with those of its entry.

    Networks of two types may agree in every shape, and then nothing but the type tells them apart.

    Raises:
        InputError: It is none of them.
    """
    if spec.model_types and kind not in spec.model_types:
        raise InputError(
            f"{spec.name}: the checkpoint {spec.repository} is of another architecture than the entry: its "
            f"type is {kind}, not {' or '.join(spec.model_types)}; give the file of {spec.name}."
        )


def check_real(spec: BackboneSpec, tensors: Mapping[str, Tensor]) -> None:
    """Raise InputError for weights that are integers or complex: those of a quantised network, say."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            kind = str(tensor.dtype).removeprefix("torch.")
            raise InputError(
                f"{spec.name}: the weights of {spec.repository} should be floating-point numbers; {name} "
                f"holds {kind}; give the checkpoint as it was trained, not quantised."
            )


def check_finite(spec: BackboneSpec, tensors: Mapping[str, Tensor]) -> None:
    """Raise InputError for weights with a NaN or an infinity."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(
                f"{spec.name}: the weights of {spec.repository} should be finite; {name} holds a NaN or an "
                "infinity; fetch the file again, or give another checkpoint."
            )


def check_count(spec: BackboneSpec, count: int) -> None:
    """Compare the number of weights of a network with what its entry says.

    Sizes of one family may agree in all else: a gated MLP has half as many weights again as a plain one. A
    table of positions of another size, or a bias more or less, is less than a tenth of a network.

    Raises:
        InputError: They differ by more than a tenth.
    """
    if spec.parameters and abs(count - spec.parameters) > _TOLERANCE * spec.parameters:
        raise InputError(
            f"{spec.name}: the checkpoint {spec.repository} differs from the entry: weights: {count:,}, not "
            f"{spec.parameters:,}."
        )


def check_facts(spec: BackboneSpec, facts: Facts) -> None:
    """Raise InputError where an entry and what its checkpoint says differ, with all that does."""
    pairs = {
        **_compared_stages(spec, facts),
        "attention heads": (spec.heads, facts.heads),
        "prefix tokens": (spec.prefix_tokens, facts.prefix_tokens),
        "a class token": (spec.has_cls, facts.has_cls),
        "a final norm": (spec.has_final, facts.has_final),
        "channels of the stem": (spec.stem_width or spec.stages[0].width, facts.stem_width),
        "pixels a side of its training images": (spec.trained_size, spec.trained_size and facts.input_size),
        **_compared_mlps(spec, facts),
    }
    differences = [f"{what}: {found}, not {said}" for what, (said, found) in pairs.items() if said != found]
    if differences:
        raise InputError(
            f"{spec.name}: the checkpoint {spec.repository} differs from the entry: {'; '.join(differences)}."
        )


def _compared_stages(spec: BackboneSpec, facts: Facts) -> dict[str, tuple[object, object]]:
    """What the entry and the checkpoint say about blocks; number by number where both have one stage."""
    if len(spec.stages) == len(facts.stages) == 1:
        (said,), (found,) = spec.stages, facts.stages
        return {
            "blocks": (said.blocks, found.blocks),
            "width": (said.width, found.width),
            "patch size": (said.stride, found.stride),
        }
    return {"stages (blocks, width, stride)": (_numbers(spec), _numbers(facts))}


def _numbers(holder: BackboneSpec | Facts) -> list[tuple[int, int, int]]:
    return [(stage.blocks, stage.width, stage.stride) for stage in holder.stages]


def _compared_mlps(spec: BackboneSpec, facts: Facts) -> dict[str, tuple[object, object]]:
    """Channels inside the MLP, where both are plain Vision Transformers."""
    if facts.mlp_width is None or len(spec.stages) != 1:
        return {}
    return {"width inside the MLP": (spec.mlp_width or 4 * spec.width, facts.mlp_width)}

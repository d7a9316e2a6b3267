"""What was inferred of a backbone that is not in the registry, and from where, in one line."""

from pathlib import Path

from zoo.load.checkpoint import read_json
from zoo.load.identity import locate
from zoo.load.module.network import given
from zoo.load.timm_models import timm_lines
from zoo.spec import BackboneSpec


def describe(spec: BackboneSpec, cache_dir: Path | None) -> str:
    """One line about a spec that `zoo.load` inferred: its facts, and where each came from.

    Raises:
        InputError: Its files cannot be had any more.
    """
    if spec.checkpoint == "object":
        return f"{spec.name}: {_shape(spec)}; {_images(spec)}; all from the spec that {spec.repository} gives"
    if spec.checkpoint == "module":
        return "\n".join(given(spec.repository).lines)
    if spec.checkpoint == "timm":
        return "\n".join(timm_lines(spec.entry))
    preprocessor = locate(spec, cache_dir).preprocessor
    values = {} if preprocessor is None else read_json(preprocessor)
    if values.get("do_normalize") is False:
        source = "preprocessor_config.json, which does not normalise"
    elif "image_mean" in values and "image_std" in values:
        source = "preprocessor_config.json"
    else:
        lacks = "no preprocessor_config.json" if preprocessor is None else "preprocessor_config.json has none"
        source = f"what is usual for the {spec.paper}, since {lacks}"
    return f"{spec.name}: {_shape(spec)}, from config.json ({spec.paper}); {_images(spec)} from {source}"


def _shape(spec: BackboneSpec) -> str:
    widths = dict.fromkeys(stage.width for stage in spec.stages)
    strides = dict.fromkeys(stage.stride for stage in spec.stages)
    tokens = "a class token" if spec.has_cls else "no class token"
    parts = [
        f"{spec.depth} {'block' if spec.depth == 1 else 'blocks'} of width {_join(widths)}",
        f"{spec.heads} heads" if spec.heads else "no attention",
        f"{spec.prefix_tokens} prefix {'token' if spec.prefix_tokens == 1 else 'tokens'} ({tokens})",
        f"patch size {_join(strides)} px",
        "a final norm" if spec.has_final else "no final norm",
    ]
    return ", ".join(parts)


def _images(spec: BackboneSpec) -> str:
    mean, std = (", ".join(f"{value:.4g}" for value in values) for values in (spec.mean, spec.std))
    return f"images at {spec.input_size} px; mean ({mean}) and std ({std})"


def _join(numbers: dict[int, None]) -> str:
    return "/".join(str(number) for number in numbers)

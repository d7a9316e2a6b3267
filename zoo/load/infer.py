"""The spec of a backbone outside the registry, inferred from its files in Hugging Face format."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from math import isclose, isfinite
from pathlib import Path

from layerboard.zoo.architecture import Architecture
from layerboard.zoo.errors import InputError, shortened, some
from layerboard.zoo.load.backbone import locate
from layerboard.zoo.load.checkpoint import Checkpoint, of_user, read_network_json
from layerboard.zoo.load.config import read_network
from layerboard.zoo.load.hub import fetch
from layerboard.zoo.load.onnx_file import MARK, onnx_network
from layerboard.zoo.load.timm_models import timm_network
from layerboard.zoo.local_names import local_path
from layerboard.zoo.spec import BackboneSpec, Normalisation
from layerboard.zoo.view.views import REFERENCE_SIZE

# Keys of a preprocessor_config.json that are read, and others that transformers writes.
_READ = {"crop_size", "size", "rescale_factor", "do_rescale", "do_normalize", "image_mean", "image_std"}
_OTHERS = {
    *("do_resize", "resample", "do_center_crop", "do_convert_rgb", "do_pad", "pad_size", "size_divisor"),
    *("image_processor_type", "feature_extractor_type", "processor_class", "do_flip_channel_order"),
    *("do_reduce_labels", "crop_pct", "data_format", "input_data_format", "device", "return_tensors"),
    *("default_to_square", "disable_grouping", "image_seq_length", "auto_map"),
}
_ALIKE = 0.85  # least similarity of a key and the one that was meant

_LOG = logging.getLogger(__name__)
# keys of a preprocessor_config.json that change colours in ways that mean and std cannot express
_RECOLOURS = ("do_flip_channel_order", "do_grayscale", "do_color_quantize", "rescale_offset", "offset")


def infer(repository: str, revision: str | None, cache_dir: Path | None) -> BackboneSpec:
    """Spec of a Hub repository, of that commit, branch or tag, or of a local directory.

    Its name is the Hub id or the path as given, with ``@revision`` if one is requested. Nothing is downloaded
    if ``cache_dir`` is None. Raises InputError if its files are unavailable, or its model type is not
    supported.
    """
    directory = Path(repository)
    checkpoint = of_user(directory) if directory.is_dir() else fetch(repository, revision, cache_dir)
    if checkpoint.config is None:
        raise InputError(f"{repository} has no config.json, which says what network its weights belong to.")
    values = read_network_json(checkpoint.config)
    architecture, _, facts = read_network(values, checkpoint.config)
    normalisation, side = _preprocessing(repository, checkpoint, architecture)
    patch = max(stage.stride for stage in facts.stages)
    # backbones trained on larger images are also evaluated at the size of the protocols
    evaluated = min(facts.trained_size or side or REFERENCE_SIZE, REFERENCE_SIZE)
    return replace(
        facts,
        name=f"{repository}@{revision}" if revision else repository,
        repository=repository,
        revision=revision,
        model_types=(architecture.model_type,),
        trained_size=None,
        input_size=max(patch, patch * round(evaluated / patch)),
        mean=normalisation.mean,
        std=normalisation.std,
        paper=f"model type {values.get('model_type')}",
    )


def _preprocessing(
    repository: str, checkpoint: Checkpoint, architecture: Architecture
) -> tuple[Normalisation, int | None]:
    """Normalisation, and the side of the training images in pixels if the file gives it."""
    usual = architecture.normalisation
    if checkpoint.preprocessor is None:
        assumed = f"mean {usual.mean} and std {usual.std} are assumed, as usual for its model type"
        _LOG.warning("%s has no preprocessor_config.json: %s", repository, assumed)
        return usual, None
    path = checkpoint.preprocessor
    values = read_network_json(path)
    if changed := [key for key in _RECOLOURS if values.get(key)]:
        raise InputError(
            f"{path} asks for {changed[0]} ({shortened(values[changed[0]])}), but images are given as RGB, "
            "normalised by mean and std only. Give a network that takes these (for flipped channels, flip "
            "the input channels of its first convolution) and leave the key out."
        )
    _warn_of_unknown(path, values)
    size = values.get("crop_size") or values.get("size")
    side = size.get("height") or size.get("shortest_edge") if isinstance(size, dict) else size
    side = side if isinstance(side, int) else None
    factor = values.get("rescale_factor", 1 / 255) if values.get("do_rescale", True) else 1
    if not isinstance(factor, int | float) or not isfinite(factor) or factor <= 0:
        raise InputError(f"{path} should give a number above 0 as 'rescale_factor', not {factor!r}.")
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if values.get("do_normalize") is not False:
        mean = _three(values.get("image_mean", usual.mean), "image_mean", path)
        std = _three(values.get("image_std", usual.std), "image_std", path)
        if min(std) <= 0:
            raise InputError(f"{path} should give an 'image_std' above 0, not {std}.")
    # value of a white pixel, 255, before normalisation; the spec's numbers are for pixels in [0, 1]
    white = 1.0 if isclose(255 * factor, 1) else 255.0 * factor
    red, green, blue = (value / white for value in mean)
    of_red, of_green, of_blue = (value / white for value in std)
    return Normalisation((red, green, blue), (of_red, of_green, of_blue)), side


def _warn_of_unknown(path: Path, values: Mapping[str, object]) -> None:
    """Say which keys of preprocessing are not read, if one that is read is missing or nearly there."""
    unknown = sorted(values.keys() - {*_READ, *_OTHERS})
    guesses = {key: get_close_matches(key, _READ - values.keys(), n=1, cutoff=_ALIKE) for key in unknown}
    for key, (meant, *_) in ((key, near) for key, near in guesses.items() if near):
        _LOG.warning("%s has %r, which is not read; did you mean %r?", path, key, meant)
    lacks = [key for key in ("image_mean", "image_std") if key not in values]
    if lacks and values.get("do_normalize") is not False:
        what = f"; its {', '.join(map(repr, unknown))} is not read" if unknown else ""
        missing = " and no ".join(map(repr, lacks))
        _LOG.warning("%s has no %s: what is usual for its model type is assumed%s", path, missing, what)


def _three(values: object, key: str, path: Path) -> tuple[float, float, float]:
    listed = values if isinstance(values, list | tuple) and len(values) == 3 else ()
    numbers = [float(value) for value in listed if isinstance(value, int | float) and isfinite(value)]
    if len(numbers) != 3:
        raise InputError(f"{path} should give three numbers as '{key}', not {values!r}.")
    return numbers[0], numbers[1], numbers[2]


def describe_inferred(spec: BackboneSpec, cache_dir: Path | None) -> str:
    """One line about a spec that `zoo.load` inferred: its facts, and the source of each."""
    if spec.repository.startswith(MARK):
        network = onnx_network(spec.repository)
        facts = network.session.facts
        said = "as its metadata says" if "mean" in facts else "assumed, as for ImageNet"
        images = f"{_images(spec)}, {said}"
        if network.session.takes_bytes:
            known = f" by {_numbers(spec)}, {said}" if "mean" in facts else ""
            images = f"images at {spec.input_size} px, which it normalises itself{known}"
        names = ("backbone", "revision", "layers", "poolings")
        claims = (f"{name} {shortened(facts[name])}" for name in names if name in facts)
        claimed = f"; the file says: {', '.join(claims)}" if "backbone" in facts else ""
        return f"{_titled(spec)}: {_shape(spec)}, of {some(network.used)}; {images}{claimed}"
    if spec.checkpoint == "object":
        return f"{spec.name}: {_shape(spec)}; {_images(spec)}; all from the spec that {spec.repository} gives"
    if spec.checkpoint == "timm":
        return "\n".join(timm_network(spec.entry).lines)
    preprocessor = locate(spec, cache_dir).preprocessor
    values = {} if preprocessor is None else read_network_json(preprocessor)
    if values.get("do_normalize") is False:
        source = "preprocessor_config.json, which does not normalise"
    elif "image_mean" in values and "image_std" in values:
        source = "preprocessor_config.json"
    else:
        lacks = "no preprocessor_config.json" if preprocessor is None else "preprocessor_config.json has none"
        source = f"what is usual for the {spec.paper}, since {lacks}"
    return f"{_titled(spec)}: {_shape(spec)}, from config.json ({spec.paper}); {_images(spec)} from {source}"


def _titled(spec: BackboneSpec) -> str:
    """Its name, with its path if that is another one on this machine."""
    is_path = local_path(spec) and spec.repository != spec.name
    return f"{spec.name} ({spec.repository.removeprefix(MARK)})" if is_path else spec.name


def _shape(spec: BackboneSpec) -> str:
    widths, strides = (
        "/".join(map(str, dict.fromkeys(getattr(stage, name) for stage in spec.stages)))
        for name in ("width", "stride")
    )
    tokens = "a class token" if spec.has_cls else "no class token"
    parts = [
        f"{spec.depth} {'block' if spec.depth == 1 else 'blocks'} of width {widths}",
        f"{spec.heads} heads" if spec.heads else "no attention",
        f"{spec.prefix_tokens} prefix {'token' if spec.prefix_tokens == 1 else 'tokens'} ({tokens})",
        f"patch size {strides} px",
        "a final norm" if spec.has_final else "no final norm",
    ]
    return ", ".join(parts)


def _images(spec: BackboneSpec) -> str:
    return f"images at {spec.input_size} px; {_numbers(spec)}"


def _numbers(spec: BackboneSpec) -> str:
    mean, std = (", ".join(f"{value:.4g}" for value in values) for values in (spec.mean, spec.std))
    return f"mean ({mean}) and std ({std})"

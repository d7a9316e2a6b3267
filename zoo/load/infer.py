"""The spec of a backbone outside the registry, inferred from its files in Hugging Face format."""

import logging
import shlex
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from math import isclose, isfinite
from pathlib import Path

from layerboard.zoo.entries.architecture import Architecture
from layerboard.zoo.errors import InputError, shortened
from layerboard.zoo.load.checkpoint import Checkpoint, of_user, read_network_json
from layerboard.zoo.load.config import read_network
from layerboard.zoo.load.hub import fetch
from layerboard.zoo.references import split_part
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
    """Spec of a Hub repository, of that commit, branch or tag, or of a local directory or file of weights.

    Its name is the Hub id or the path as given, with ``@revision`` if one is requested. Nothing is downloaded
    if ``cache_dir`` is None. Raises InputError if its files are unavailable, or its model type is not
    supported.
    """
    path, _ = split_part(repository)
    checkpoint = of_user(path) if path.exists() else fetch(repository, revision, cache_dir)
    if checkpoint.config is None:
        where, folder = (" beside it or in the folder above", path.parent) if path.is_file() else ("", path)
        raise InputError(
            f"{repository} has no config.json{where}, which says what network its weights belong to; write "
            f"it, network.config.save_pretrained({str(folder)!r}) for one of transformers, or give "
            f"--weights NAME={shlex.quote(repository)}, where NAME is a backbone of the registry that it fits"
        )
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

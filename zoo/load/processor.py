"""How images are normalised, as files beside weights say it: those of transformers, open_clip and timm."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import isclose
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from layerboard.zoo.errors import InputError, ensure, shortened
from layerboard.zoo.load.checkpoint import Checkpoint, read_network_json
from layerboard.zoo.reading import converted
from layerboard.zoo.spec import Normalisation

# Keys under which other keys are, the first one that a file has.
_NESTED = ("image_processor", "video_processor", "preprocess_cfg", "pretrained_cfg")
_SHORT = {"mean": "image_mean", "std": "image_std"}  # keys of timm and open_clip
# keys that change colours in ways that mean and std cannot express
_RECOLOURS = ("do_flip_channel_order", "do_grayscale", "do_color_quantize", "rescale_offset", "offset")
_ALIKE = 0.85  # least similarity of a key and the one that was meant; transformers' other keys are below
# Of pixels from 0 to 1. All that is known is within; numbers of pixels from 0 to 255 are not.
_MEANS, _STDS = (-2.0, 3.0), (1e-3, 10.0)

_LOG = logging.getLogger(__name__)
_Channels = Annotated[list[float], Meta(min_length=3, max_length=3)] | float


@dataclass(frozen=True, slots=True)
class _Processor:
    """What is read of a processor."""

    image_mean: _Channels | None = None
    image_std: _Channels | None = None
    do_normalize: bool | None = None
    do_rescale: bool | None = None
    rescale_factor: float | None = None
    crop_size: Any = None
    size: Any = None

    @property
    def says(self) -> bool:
        """Whether the processor says how images are normalised."""
        return self.do_normalize is False or None not in (self.image_mean, self.image_std)

    @property
    def side(self) -> int | None:
        """The side of the training images in pixels; None if it does not say."""
        size = self.crop_size or self.size
        side = size.get("height") or size.get("shortest_edge") if isinstance(size, dict) else size
        return side if isinstance(side, int) else None


def said_normalisation(checkpoint: Checkpoint) -> tuple[Path | None, str]:
    """The file that says how images are normalised, and what it lacks or says otherwise; "" for nothing."""
    files = [*_processors(checkpoint)]
    if not files:
        return None, "no preprocessor_config.json"
    path, processor, _ = next((each for each in files if each[1].says), files[0])
    without = f"{path.name}, which does not normalise" if processor.do_normalize is False else path.name
    return (path, without) if processor.says else (None, f"{path.name} has none")


def preprocessing(
    repository: str, checkpoint: Checkpoint, usual: Normalisation
) -> tuple[Normalisation, int | None]:
    """Normalisation, and the side of the training images in pixels if a file gives it.

    What no file says is ``usual``, which a warning says. Raises InputError for files that disagree, and for
    numbers that no image can have.
    """
    files = [*_processors(checkpoint)]
    if not files:
        assumed = f"mean {usual.mean} and std {usual.std} are assumed, as usual for its model type"
        _LOG.warning("%s has no preprocessor_config.json: %s", repository, assumed)
        return usual, None
    for path, _, values in files:
        if changed := [key for key in _RECOLOURS if values.get(key)]:
            raise InputError(
                f"{path} asks for {changed[0]} ({shortened(values[changed[0]])}), but images are given as "
                "RGB, normalised by mean and std only. Give a network that takes these (for flipped "
                "channels, flip the input channels of its first convolution) and leave the key out."
            )
    telling = [each for each in files if each[1].says]
    path, processor, values = (telling or files)[0]
    _warn_of_unknown(path, values)
    normalisation = _normalisation(path, processor, usual)
    for other, also, _ in telling[1:]:
        if (said := _normalisation(other, also, usual)) != normalisation:
            raise InputError(
                f"{path} says mean {normalisation.mean} and std {normalisation.std}, and {other.name} beside "
                f"it mean {said.mean} and std {said.std}; remove the file that is not the network's"
            )
    return normalisation, next((each.side for _, each, _ in files if each.side), None)


def _processors(checkpoint: Checkpoint) -> Iterator[tuple[Path, _Processor, Mapping[str, Any]]]:
    """Each file that describes a processor, with what is read of it, and all of its keys."""
    for path in (*checkpoint.preprocessors, *filter(None, (checkpoint.config,))):
        values = read_network_json(path, dict[str, Any])
        nested = next((values[key] for key in _NESTED if isinstance(values.get(key), dict)), None)
        if nested is None and path.name != "preprocessor_config.json":
            continue  # it describes other things
        values = {_SHORT.get(key, key): value for key, value in nested.items()} if nested else values
        try:
            yield path, converted(_Processor, values), values
        except ValueError as error:
            raise InputError(f"{path} describes no processor of images ({error}); fetch it again") from error


def _normalisation(path: Path, processor: _Processor, usual: Normalisation) -> Normalisation:
    """What a processor does to pixels from 0 to 1; raises InputError for numbers beyond sense."""
    factor = 1 / 255 if processor.rescale_factor is None else processor.rescale_factor
    factor = 1.0 if processor.do_rescale is False else factor
    ensure(1e-6 <= factor <= 1, f"{path} should give a number above 0 as 'rescale_factor', not {factor!r}.")
    # value of a white pixel, 255, before normalisation; the spec's numbers are for pixels in [0, 1]
    white = 1.0 if isclose(255 * factor, 1) else 255.0 * factor
    if processor.do_normalize is False:
        return Normalisation((0.0, 0.0, 0.0), (1 / white, 1 / white, 1 / white))
    means = _three(processor.image_mean, usual.mean, white, _MEANS, f"{path} should give an 'image_mean'")
    stds = _three(processor.image_std, usual.std, white, _STDS, f"{path} should give an 'image_std'")
    return Normalisation(means, stds)


def _three(
    given: list[float] | float | None,
    usual: tuple[float, float, float],
    white: float,
    ends: tuple[float, float],
    expected: str,
) -> tuple[float, float, float]:
    """Three numbers for pixels from 0 to 1, of those for pixels from 0 to ``white``."""
    listed = given if isinstance(given, list) else [*usual] if given is None else [given] * 3
    red, green, blue = (value / white for value in listed)
    if not all(ends[0] <= value <= ends[1] for value in (red, green, blue)):
        low, high = (end * white for end in ends)
        raise InputError(f"{expected} of three numbers from {low:g} to {high:g}, not {shortened(listed)}.")
    return red, green, blue


def _warn_of_unknown(path: Path, values: Mapping[str, object]) -> None:
    """Say which keys of preprocessing are missing, and which are not read but nearly one that is."""
    read = {*_Processor.__dataclass_fields__}
    for key in sorted(values.keys() - read):
        for meant in get_close_matches(key, read - values.keys(), n=1, cutoff=_ALIKE):
            _LOG.warning("%s has %r, which is not read; did you mean %r?", path, key, meant)
    lacks = [key for key in ("image_mean", "image_std") if values.get(key) is None]
    if lacks and values.get("do_normalize") is not False:
        missing = " and no ".join(map(repr, lacks))
        _LOG.warning("%s has no %s: what is usual for its model type is assumed", path, missing)

"""The spec of a backbone that is not in the registry, read from its files in Hugging Face format."""

import logging
from pathlib import Path

from zoo.architecture import Architecture
from zoo.checkpoint import Checkpoint, in_directory, read_json
from zoo.errors import InputError
from zoo.facts import read_config, read_facts
from zoo.hub import fetch
from zoo.normalisation import Normalisation
from zoo.spec import BackboneSpec

REFERENCE_SIZE = 224
"""Side in pixels at which backbones of larger training images are evaluated."""

_LOG = logging.getLogger(__name__)


def infer(repository: str, revision: str | None, cache_dir: Path | None) -> BackboneSpec:
    """Spec of a Hub repository or of a local directory.

    Its name is the Hub id or the path as given, with ``@revision`` where one is asked for.

    Args:
        repository: Hub id, or path of a directory.
        revision: Commit, branch or tag of the repository.
        cache_dir: Where files from the Hub are kept; nothing is downloaded if None.

    Raises:
        InputError: Its files cannot be had, or its model type is not supported.
    """
    directory = Path(repository)
    checkpoint = in_directory(directory) if directory.is_dir() else fetch(repository, revision, cache_dir)
    if checkpoint.config is None:
        raise InputError(f"{repository} has no config.json, which says what network its weights belong to.")
    values = read_json(checkpoint.config)
    architecture, config = read_config(values, checkpoint.config)
    facts = read_facts(architecture, config)
    normalisation, side = _preprocessing(repository, checkpoint, architecture)
    patch = max(stage.stride for stage in facts.stages)
    return BackboneSpec(
        name=f"{repository}@{revision}" if revision else repository,
        family=architecture.family,
        supervision="unknown",
        repository=repository,
        revision=revision,
        stages=facts.stages,
        heads=facts.heads,
        prefix_tokens=facts.prefix_tokens,
        has_cls=facts.has_cls,
        has_final=facts.has_final,
        stem_width=None if facts.stem_width == facts.stages[0].width else facts.stem_width,
        input_size=_evaluated_side(facts.input_size or side, patch),
        mean=normalisation.mean,
        std=normalisation.std,
        paper=f"model type {values.get('model_type')}",
    )


def _evaluated_side(native: int | None, patch: int) -> int:
    """Training side, but at most the reference size, as a multiple of the patch; in pixels."""
    side = min(native or REFERENCE_SIZE, REFERENCE_SIZE)
    return max(patch, patch * round(side / patch))


def _preprocessing(
    repository: str, checkpoint: Checkpoint, architecture: Architecture
) -> tuple[Normalisation, int | None]:
    """Normalisation, and the side of the training images in pixels where the file says it."""
    if checkpoint.preprocessor is None:
        _LOG.warning(
            "%s has no preprocessor_config.json: mean %s and std %s are assumed, as usual for its model type",
            repository,
            architecture.normalisation.mean,
            architecture.normalisation.std,
        )
        return architecture.normalisation, None
    values = read_json(checkpoint.preprocessor)
    size = values.get("crop_size") or values.get("size")
    if isinstance(size, dict):
        size = size.get("height") or size.get("shortest_edge")
    side = size if isinstance(size, int) else None
    if values.get("do_normalize") is False:
        return Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), side
    usual = architecture.normalisation
    mean = _three(values.get("image_mean", usual.mean), "image_mean", checkpoint.preprocessor)
    std = _three(values.get("image_std", usual.std), "image_std", checkpoint.preprocessor)
    return Normalisation(mean, std), side


def _three(values: object, key: str, path: Path) -> tuple[float, float, float]:
    if (
        isinstance(values, list | tuple)
        and len(values) == 3
        and all(isinstance(v, int | float) for v in values)
    ):
        red, green, blue = (float(value) for value in values)
        return red, green, blue
    raise InputError(f"{path} should give three numbers as '{key}', not {values!r}.")

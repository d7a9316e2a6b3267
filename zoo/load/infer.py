"""The spec of a backbone outside the registry, inferred from its files in Hugging Face format."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.checkpoint import of_user, read_network_json
from layerboard.zoo.load.config import read_network
from layerboard.zoo.load.hub import fetch
from layerboard.zoo.load.processor import preprocessing
from layerboard.zoo.references import split_part
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.view.views import REFERENCE_SIZE


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
    values = read_network_json(checkpoint.config, dict[str, Any])
    architecture, _, facts = read_network(values, checkpoint.config)
    normalisation, side = preprocessing(repository, checkpoint, architecture.normalisation)
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

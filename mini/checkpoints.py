"""Weights of the mini backbones: trained ones are in the package, untrained ones are generated from a seed.

Both are directories in Hugging Face format, loaded like any others. transformers is imported only to generate
weights.
"""

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

from layerboard.zoo.atomic import file_sha256, temporary_folder
from layerboard.zoo.entries.mini import ENTRIES
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec

RECIPE = 1  # version of the random weights: raise it when a change here changes them
SEED = 0

WEIGHTS = Path(__file__).parent / "weights"  # folder of the trained backbones, one directory each
SUMS = "SHA256SUMS"  # in each directory: digests of its weights and configurations, for `sha256sum --check`


def packaged(spec: BackboneSpec, cache_dir: Path | None) -> tuple[Path, None]:
    """Directory of a trained mini backbone, whose digest is its revision.

    Raises InputError: this installation lacks them, or they are damaged.
    """
    folder, problem = WEIGHTS / spec.entry, "has no weights"
    if (folder / "model.safetensors").is_file():
        try:
            if sums(folder) == (folder / SUMS).read_bytes():
                return folder, None
            problem = f"holds files that have not the digests of its {SUMS}"
        except OSError as error:
            problem = f"cannot be read ({error.strerror}: {error.filename})"
    raise InputError(f"{folder} {problem}: install the package again")


def sums(folder: Path) -> bytes:
    """Digests of the weights and configurations of a directory, as its `SUMS` has them; raises OSError."""
    paths = [folder / name for name in ("model.safetensors", "config.json", "preprocessor_config.json")]
    return "".join(f"{file_sha256(path)}  {path.name}\n" for path in paths).encode()


def _is_whole(folder: Path) -> bool:
    """Whether the files of a directory have the digests that lie beside them."""
    try:
        return sums(folder) == (folder / SUMS).read_bytes()
    except OSError:
        return False


def generated(spec: BackboneSpec, cache_dir: Path | None) -> tuple[Path, str]:
    """Directory and revision of an untrained mini backbone, written below ``cache_dir`` at the first request.

    Raises InputError: they cannot be written, or there is no folder for them.
    """
    if cache_dir is None:
        raise InputError(f"{spec.name} needs a cache directory for its generated weights.")
    # Weights are drawn at the input size of the entry, whatever a run asks for.
    side = next((entry.input_size for entry in ENTRIES if entry.name == spec.entry), spec.input_size)
    spec = replace(spec, name=spec.entry, input_size=side)
    # all that the weights follow from
    facts = (RECIPE, SEED, spec.name, spec.family, spec.stages, spec.heads, spec.stem_width, spec.input_size)
    recipe = hashlib.sha256(repr(facts).encode()).hexdigest()[:12]
    folder = cache_dir / "generated" / f"{spec.name}-{recipe}"
    if not _is_whole(folder):
        from layerboard.mini.random_weights import write_random_weights

        try:
            with temporary_folder(folder.parent) as draft:
                write_random_weights(spec, draft, SEED)
                (draft / SUMS).write_bytes(sums(draft))
                shutil.rmtree(folder, ignore_errors=True)
                os.replace(draft, folder)
        except OSError as error:
            if not _is_whole(folder):  # else another process came first
                problem = f"{folder} cannot be written: {error.strerror}; choose another --cache."
                raise InputError(problem) from error
    return folder, f"seed-{SEED}-{recipe}"

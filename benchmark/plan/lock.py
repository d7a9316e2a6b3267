"""The lock of an output folder: which weights each of its backbones had, so that a name means one network."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.reading import read_regular
from layerboard.zoo.references import split_part
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import BackboneSpec

LOCK = "layerboard-weights.json"  # in the output folder
_REGISTRY = {spec.name for spec in all_specs()}


@dataclass(frozen=True, slots=True)
class LockedWeights:
    """The weights that a name had when it was first loaded."""

    repository: str  # Hub id; "" if the user gave a file or directory
    revision: str  # commit, or digest of what the user gave
    sha256: str  # of the file, or of the lines of ``sha256sum`` for several


Lock = dict[str, LockedWeights]  # by name of the entry


def read_lock(output: Path) -> Lock:
    """The lock of an output folder, empty without one; raises InputError if it cannot be read."""
    path = output / LOCK
    try:
        content = json.loads(read_regular(path))
        return {str(name): LockedWeights(**row) for name, row in content.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"expected the weights of earlier runs in {path}, found something else: remove it to accept "
            "the weights of today"
        ) from error


def write_lock(lock: Lock, output: Path) -> None:
    """Write the lock of an output folder."""
    rows = {name: asdict(lock[name]) for name in sorted(lock)}
    write_whole(output / LOCK, json.dumps(rows, indent=1) + "\n")


def at_locked_revision(spec: BackboneSpec, lock: Lock) -> BackboneSpec:
    """A backbone whose commit nobody has pinned, at that of an earlier run into the same folder."""
    known = lock.get(spec.entry)
    if spec.revision or known is None or not known.repository or known.repository != spec.repository:
        return spec
    return replace(spec, revision=known.revision)


def locked_weights(spec: BackboneSpec, identity: BackboneIdentity) -> Lock:
    """The row of a backbone in a lock; none without files, for those of this package, and for a user's own.

    A directory of the user has no row under its own name, only under that of an entry of the registry.
    """
    given = split_part(spec.repository)[0].exists()
    if not identity.sha256 or spec.origin.supply or (given and spec.entry not in _REGISTRY):
        return {}
    repository = "" if given else spec.repository
    return {spec.entry: LockedWeights(repository, identity.revision, identity.sha256)}


def require_locked(weights: Lock, lock: Mapping[str, LockedWeights], output: Path) -> None:
    """Raise InputError if a backbone has other weights than in earlier runs into the same folder."""
    for name, now in weights.items():
        before = lock.get(name, now)
        if before.sha256 != now.sha256:
            raise InputError(
                f"the weights of {name} have the SHA-256 {now.sha256} (revision {now.revision}), and in "
                f"earlier runs they had {before.sha256} (revision {before.revision}), says {output / LOCK}: "
                "give another --output, or --again to go on with those of today"
            )

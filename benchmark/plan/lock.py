"""Which weights the backbones of a folder had, so that a name means one network: the pins of its `RUN_FILE`.

A campaign file can have such pins, too. They stand nowhere else.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from layerboard.benchmark.forms.campaign import PINS, RUN_FILE, campaign_file, campaign_text, read_campaign
from layerboard.benchmark.forms.option import declared
from layerboard.benchmark.forms.request import Request
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.reading import converted
from layerboard.zoo.references import split_part
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import BackboneSpec

_REGISTRY = {spec.name: spec for spec in all_specs()}


@dataclass(frozen=True, slots=True)
class LockedWeights:
    """The weights that a name had when it was first loaded."""

    repository: str  # Hub id; "" if the user gave a file or directory
    revision: str  # commit, or digest of what the user gave
    sha256: str  # of the file, or of the lines of ``sha256sum`` for several


Lock = dict[str, LockedWeights]  # by name of the entry


def read_lock(output: Path) -> Lock:
    """The weights of earlier runs into an output folder, none without any; raises InputError."""
    if not (path := output / RUN_FILE).exists():
        return {}
    try:
        return _pins(path)
    except InputError as error:
        raise InputError(f"{error}; remove the file to accept the weights of today") from error


def _pins(path: Path) -> Lock:
    """The pins of a campaign file; raises InputError if they are none."""
    try:
        return converted(Lock, read_campaign(path).get(PINS, {}))
    except ValueError as error:
        raise InputError(
            f"the key {PINS} of {path} takes a repository, a revision and a sha256 by name of the backbone, "
            f"as a run writes them ({error})"
        ) from error


def known_lock(request: Request) -> Lock:
    """The weights that a run has to have: of earlier ones into its folder, and of its campaign file.

    None with ``--again``. Raises InputError where the two differ.
    """
    if request.again:
        return {}
    before = read_lock(request.output)
    pins = {} if request.campaign is None else _pins(file := campaign_file(request.campaign))
    for name, given in pins.items():
        if (known := before.get(name, given)).sha256 != given.sha256:
            raise InputError(
                f"the key {PINS} of {file} has {name} with the SHA-256 {given.sha256}, and earlier runs into "
                f"{request.output} had {known.sha256}: give another --output, or --again for those of today"
            )
    return pins | before


def write_run(output: Path, values: Mapping[str, object], lock: Lock) -> None:
    """Write the `RUN_FILE` of an output folder: kept values of options by name, and pins; none of neither."""
    options = [option for option in declared(Request) if option.name in values]
    pins = {name: asdict(lock[name]) for name in sorted(lock)}
    text, path = campaign_text(values, options, output, pins), output / RUN_FILE
    if (values or pins) and not (path.exists() and path.read_bytes() == text.encode()):
        write_whole(path, text)


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


def given_weights(lock: Lock) -> str:
    """What a run says of weights that the user gave under names of the registry; "" if nothing.

    That is which are no published files, and of which nobody knows.
    """
    other, unknown = [], []
    for name in sorted(name for name, row in lock.items() if name in _REGISTRY and not row.repository):
        published = _REGISTRY[name].file
        if not (published.name and published.sha256):
            unknown.append(name)
        elif not lock[name].sha256.startswith(published.sha256):
            other.append(name)
    said = [f"{', '.join(other)}: other files than the published ones, by their SHA-256"] if other else []
    said += [f"{', '.join(unknown)}: no SHA-256 of the published files is known"] if unknown else []
    return f"weights that you gave: {'; '.join(said)}" if said else ""


def require_locked(weights: Lock, lock: Lock, request: Request) -> None:
    """Raise InputError if a backbone has other weights than it should have by `known_lock`."""
    for name, now in weights.items():
        before = lock.get(name, now)
        if before.sha256 != now.sha256:
            earlier = request.campaign is None or name in read_lock(request.output)
            where = request.output / RUN_FILE if earlier else campaign_file(str(request.campaign))
            raise InputError(
                f"the weights of {name} have the SHA-256 {now.sha256} (revision {now.revision}), and those "
                f"pinned in {where} have {before.sha256} (revision {before.revision}): give another "
                f"{'--output' if earlier else '--campaign'}, or --again to go on with those of today"
            )

"""Packs by name: a folder, or a dataset of the Hub, in one of two forms."""

from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.hub_spec import PREFIX, HubSpec, parse_hub_spec
from tasks.datasets.packs.hub_imagenet import FILES, open_hub_imagenet
from tasks.datasets.packs.manifest import MANIFEST, Manifest, read_manifest
from tasks.datasets.packs.pack import Pack, open_packed, require_digests
from zoo.errors import InputError, MissingDataError
from zoo.online import hub_answers, offline_unless

INSIDE = "!"
"""Ends the name of a pack where the path of a file in it follows, as in URLs of files in Java archives."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where a pack is on this machine.

    Attributes:
        name: By what it is found again, on any machine: with an absolute path, or with a commit.
        spec: What was asked for.
        folder: Its folder; of a dataset of the Hub, what was fetched of it so far.
        manifest: What it says of itself; nothing where `data pack` did not write it.
    """

    name: str
    spec: HubSpec
    folder: Path
    manifest: Manifest


def find_pack(name: str) -> Found:
    """Where a pack is; of a dataset of the Hub, only its manifest is fetched.

    Args:
        name: ``hf:PATH``, ``hf:ID`` or ``hf:ID@REVISION``.

    Raises:
        InputError: No such folder or dataset, a name with an exclamation mark or with options, or a manifest
            that is malformed.
    """
    spec = parse_hub_spec(name)
    if spec.options or INSIDE in name:
        raise InputError(f"--data takes {PREFIX}ID, {PREFIX}ID@REVISION or {PREFIX}FOLDER, found {name!r}")
    if not spec.local:
        folder = _fetched(spec, (MANIFEST,))
        return Found(f"{PREFIX}{spec.location}@{folder.name}", spec, folder, read_manifest(folder))
    folder = Path(spec.location).absolute()
    if not folder.is_dir():
        raise MissingDataError(f"expected a folder of parquet files at {folder}, which does not exist")
    return Found(f"{PREFIX}{folder}", spec, folder, read_manifest(folder))


def open_pack(name: str) -> Pack:
    """The files of a pack; of a dataset of the Hub, what is missing on this machine is fetched.

    Raises:
        InputError: It is not there, is in no known form, or is damaged.
    """
    found = find_pack(name)
    shards = tuple(shard.name for dataset in found.manifest.values() for shard in dataset.shards)
    if not found.spec.local:
        _fetched(found.spec, shards or FILES)
    if not found.manifest:
        return open_hub_imagenet(found.folder, name)
    return open_packed(found.folder, found.manifest)


def check_bytes(name: str) -> str:
    """Compare every byte of a pack with its digests; gives what was compared, in words.

    Raises:
        InputError: A digest is another, or it has none.
    """
    found = find_pack(name)
    if not found.manifest:
        raise InputError(
            f"expected {MANIFEST} in {name}, found none; without it there are no digests to compare"
        )
    return f"{require_digests(found.folder, found.manifest):,} shards have their SHA-256"


def _fetched(spec: HubSpec, names: tuple[str, ...]) -> Path:
    """Folder of a commit of a dataset of the Hub, with some files where it has them; raises InputError."""
    from huggingface_hub import snapshot_download

    try:
        with offline_unless(hub_answers()):
            fetched = snapshot_download(
                spec.location, repo_type="dataset", revision=spec.revision, allow_patterns=list(names)
            )
    except (OSError, ValueError, RuntimeError) as error:
        raise MissingDataError(
            f"cannot fetch dataset {spec.text}: {' '.join(str(error).split())[:300]}; check the id and the "
            f"network, or fetch it elsewhere and name its folder, {PREFIX}PATH"
        ) from error
    return Path(str(fetched))

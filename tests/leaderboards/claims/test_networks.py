"""Networks of claims are found by their form and training."""

import pytest

from layerboard.leaderboards.claims.networks import (
    ANY,
    AVERAGED,
    CLASS_VITS,
    CONVNETS,
    PATCHES,
    SHARES,
    SKIPLESS,
    SUPERVISED,
    VITS,
    KnownNetwork,
    Relation,
    of_method,
    removed_block,
    size_pairs,
)
from tests.leaderboards.claims.planted import SPECS

NAMES = (
    "fs-b32 fs-b16 fs-l16 clip-b16 clip-l14 dino-b16 dino-b8 mae-b16 mae-h14 beit-b16 siglip-b16 resnet50 "
    "swin-t mini-fs64 mini-fs64-seed1 mini-fs64-mean mini-fs64-noskip6 mini-fs64-10pct mini-resnet"
)
NETWORKS = [KnownNetwork(SPECS[name], name) for name in NAMES.split()]


def found(relation: Relation) -> set[str]:
    return {" ".join(network.name for network in group) for group in relation.find(NETWORKS)}


@pytest.mark.parametrize(
    ("relation", "groups"),
    [
        (CONVNETS, "resnet50, mini-resnet"),
        (size_pairs(), "fs-b16 fs-l16, clip-b16 clip-l14, mae-b16 mae-h14"),
        (size_pairs("reconstruction"), "mae-b16 mae-h14"),
        (size_pairs(family="CLIP"), "clip-b16 clip-l14"),
        (PATCHES, "fs-b32 fs-b16, dino-b16 dino-b8"),
        (SHARES, "mini-fs64 mini-fs64-10pct"),
        (SKIPLESS, "mini-fs64 mini-fs64-noskip6"),
        (AVERAGED, "mini-fs64 mini-fs64-mean, mini-fs64 mini-resnet"),
        (of_method("reconstruction"), "mae-b16, mae-h14, beit-b16"),
        (of_method("contrast"), "dino-b16, dino-b8"),
    ],
)
def test_relations_find_networks_by_what_they_are(relation: Relation, groups: str) -> None:
    assert found(relation) == {*groups.split(", ")}


def test_kinds_of_networks() -> None:
    assert found(VITS) == {*NAMES.split()} - {"resnet50", "swin-t", "mini-resnet"}
    assert found(VITS) - found(CLASS_VITS) == {"siglip-b16"}
    assert found(SUPERVISED) >= {"fs-b16", "clip-b16", "siglip-b16"}
    assert not {"dino-b16", "mae-b16", "resnet50"} & found(SUPERVISED)
    assert ANY.find(NETWORKS[:1]) == []


def test_a_fine_tuned_network_counts_by_its_last_training() -> None:
    tuned = KnownNetwork(SPECS["beit-b16-ft22k-ft1k"], "")
    assert tuned.method == "labels"


def test_the_block_without_skips_is_read_from_the_entry() -> None:
    by_name = {network.name: network for network in NETWORKS}
    assert removed_block(by_name["mini-fs64"], by_name["mini-fs64-noskip6"]) == 6
    assert removed_block(by_name["mini-fs64-mean"], by_name["mini-fs64-noskip6"]) == 0

"""Each claim holds where it was planted, fails where its opposite was, and cannot hold on noise."""

from collections.abc import Callable

import numpy as np
import pytest

from layerboard.leaderboards.claims import readings
from layerboard.leaderboards.claims.entries import CLAIMS, LABELS, LAYERS, Claim
from layerboard.leaderboards.claims.networks import KnownNetwork
from layerboard.leaderboards.claims.verdicts import judge_claim
from tests.leaderboards.claims.planted import Array, Draw, Generator, Plan, World

SUPERVISED, ALONE = "fs-b16 clip-b16", "dino-b16 mae-b16"
METHODS = "fs-b16 deit-b16 clip-b16 metaclip-b16 dino-b16 moco-b16 mae-b16 pixio-b16"
RIVALS = "fs-b16 clip-b16 dino-b16 moco-b16 ibot-b16 msn-b16 mae-b16 beit-b16 pixio-b16"
TRAININGS = "fs-s16 fs-b16 clip-b16 clip-l14 dino-s16 dino-b16 mae-b16 mae-l16"
SIZES, PATCHES, RESNET = "mae-b16 mae-l16", "fs-b32 fs-b16", "fs-b16 mae-b16 resnet50"
CUT, PART, AVERAGED = (f"mini-fs64 mini-fs64-{change}" for change in ("noskip6", "10pct", "mean"))
TASKS = ("knn", "retrieval", "davis")
CLUSTERINGS = ("cluster-image", "cluster-object", "cluster-part")


def depth(network: KnownNetwork) -> Array:
    return np.arange(1, network.depth + 1) / network.depth


def noisy(value: Callable[[KnownNetwork], Array | float], spread: float = 0.02) -> Draw:
    """Numbers of every block near those of a function."""
    return lambda network, generator: value(network) + generator.normal(0, spread, network.depth)


def hits(value: Callable[[KnownNetwork], Array | float]) -> Draw:
    return lambda network, _: np.full(network.depth, 1.0) * value(network)


def alike(
    value: Callable[[KnownNetwork, KnownNetwork], Array | float], spread: float = 0.02
) -> Callable[..., Array]:
    """CKA of two networks near that of a function; symmetric, and 1 for a block with itself."""

    def drawn(first: KnownNetwork, second: KnownNetwork, generator: Generator) -> Array:
        table = np.full((first.depth, second.depth), 0.0) + value(first, second)
        table += generator.normal(0, spread, table.shape)
        if first == second:
            table = np.triu(table, 1) + np.triu(table, 1).T + np.eye(len(table))
        return table

    return drawn


def is_first(network: KnownNetwork, names: str) -> bool:
    return network.name == names.split()[0]


def shape(names: str, network: KnownNetwork, sign: int) -> Array:
    """A curve that two networks of a pair share, or have with opposite signs."""
    place = names.split().index(network.name)
    return (sign if place % 2 else 1) * np.cos((1 + place // 2) * np.pi * np.linspace(0, 1, network.depth))


def maps(sign: int) -> Draw:
    """Maps of the class token [blocks heads tokens] of heads that become alike with depth, or unlike."""

    def drawn(network: KnownNetwork, generator: Generator) -> Array:
        share = (depth(network) if sign > 0 else 1 - depth(network))[:, None, None]
        shared = generator.random((1, 1, 64))
        return share * shared + (1.2 - share) * generator.random((network.depth, 4, 64))

    return drawn


def kinds(share: Callable[[KnownNetwork], float]) -> Draw:
    def drawn(network: KnownNetwork, generator: Generator) -> Array:
        return np.where(generator.random((network.depth, 12)) < share(network), "offset", "global")

    return drawn


def of_images(sign: int) -> Draw:
    """Maps of images [images blocks rows columns], far apart or alike."""

    def drawn(network: KnownNetwork, generator: Generator) -> Array:
        return np.abs(1 + (1.0, 0.9, 0.0)[1 - sign] * generator.uniform(-1, 1, (4, network.depth, 4, 4)))

    return drawn


def of_heads(sign: int) -> Draw:
    def drawn(network: KnownNetwork, generator: Generator) -> Array:
        return np.abs(1 + (0.0, 0.9, 1.0)[1 - sign] * generator.uniform(-1, 1, (network.depth, 4, 17)))

    return drawn


def cross(network: KnownNetwork, sign: int, span: float = 0.4) -> Array:
    rows, columns = np.indices((network.depth, network.depth))
    return 0.5 + sign * span * (abs(rows + columns - network.depth + 1) <= 1)


def split(full: KnownNetwork, network: KnownNetwork, sign: int) -> Array:
    """CKA that falls across the block without skips of the second training, or of the first if negative."""
    rows, columns = np.indices((network.depth, network.depth)) + 1
    apart = (rows < 6) != (columns < 6)
    return 0.7 - 0.4 * (apart & ((network.spec.supervision != full.spec.supervision) == (sign > 0)))


def nearest(sign: int) -> Callable[[KnownNetwork, KnownNetwork], Array]:
    """The block of the first that is most like each of the second: a low one, or a high one."""

    def table(first: KnownNetwork, second: KnownNetwork) -> Array:
        low = 0.3 * depth(second)
        wanted = low if sign > 0 else 1 - low
        return 1 - abs(depth(first)[:, None] - wanted[None])

    return table


def places(sign: int) -> Draw:
    """CKA of tokens with patches [blocks tokens patches]: own places are kept by the class token, or lost."""

    def drawn(network: KnownNetwork, generator: Generator) -> Array:
        keeps = 0.5 if sign == 0 else 0.98 if ("mean" not in network.name) == (sign > 0) else 0.3
        found = generator.random((network.depth, 64)) < keeps
        table = generator.random((network.depth, 64, 64))
        table[:, np.arange(64), np.arange(64)] = np.where(found, 2.0, -1.0)
        return table

    return drawn


def tokens(sign: int) -> Draw:
    def drawn(network: KnownNetwork, generator: Generator) -> Array:
        gain = 10 * sign * ("mean" in network.name)
        return 40 + gain + generator.normal(0, 5, (network.depth + 1, 64))

    return drawn


def ranked(sign: int) -> Callable[[str], Draw]:
    """Chances that move networks by reconstruction up and down over tasks, or the others."""

    def of(task: str) -> Draw:
        def chance(network: KnownNetwork) -> float:
            moves = (network.method == "reconstruction") == (sign > 0)
            place = RIVALS.split().index(network.name)
            return 0.5 + (0.4 if (TASKS.index(task) + place) % 2 else -0.4) * moves + place / 50

        return hits(chance)

    return of


def peak(at: float) -> Callable[[KnownNetwork], Array]:
    return lambda network: 0.9 - 0.7 * abs(depth(network) - at)


def fewer(network: KnownNetwork) -> bool:
    return "%" in network.spec.data


def is_conv(network: KnownNetwork) -> bool:
    return network.is_convnet


def plan(number: int, sign: int) -> Plan:  # a table
    """A world in which a claim holds (sign 1), fails (-1), or has nothing in it (0)."""
    s, size = sign, lambda network: network.spec.width > 800
    table: dict[int, Callable[[], Plan]] = {
        1: lambda: Plan(
            SUPERVISED,
            {("attention-shares", "entropy"): noisy(lambda network: 1 - s * 0.5 * depth(network))},
            {("attention-maps", "cls_map"): maps(s)},
        ),
        2: lambda: Plan(
            "fs-b16 mae-b16", arrays={("attention-maps", "class"): kinds(lambda _: (0.05, 0.3, 0.0)[s])}
        ),
        3: lambda: Plan(
            METHODS,
            {("attention-distance", "attention-distance"): noisy(lambda each: shape(METHODS, each, s))},
        ),
        4: lambda: Plan(
            METHODS,
            {
                ("saliency", "saliency-iou-best"): noisy(
                    lambda each: 0.5 * (depth(each) > (0.3 if s > 0 else 0.95)), 0.01
                )
            },
        ),
        5: lambda: Plan(
            "mae-b16 beit-b16", hits={"cluster-image": hits(lambda _: 0.2 + 0.15 * s)}, floor=0.2
        ),
        6: lambda: Plan(
            f"{SUPERVISED} {ALONE}",
            hits=dict.fromkeys(CLUSTERINGS, hits(lambda each: 0.5 + 0.2 * s * (each.name in SUPERVISED))),
        ),
        7: lambda: Plan(METHODS, hits=dict.fromkeys(("davis", "spair"), hits(peak(0.7 if s > 0 else 1)))),
        8: lambda: Plan(
            "fs-b16 dino-b16 mae-b16",
            hits={
                task: hits(lambda each, row=row: 0.3 + 0.5 * _is_best(each, row, s))
                for row, task in enumerate(TASKS)
            },
        ),
        9: lambda: Plan(
            SUPERVISED,
            arrays={
                ("attention-maps", "sample_cls"): of_images(s),
                ("attention-maps", "cls_map"): of_heads(s),
            },
        ),
        10: lambda: Plan(
            SIZES,
            arrays={
                ("attention-maps", "class"): kinds(lambda each: 0.25 + 0.2 * (s if size(each) else -s)),
                ("attention-maps", "peak"): lambda each, _: np.ones((each.depth, 12, 2)),
            },
        ),
        11: lambda: Plan(
            TRAININGS,
            {("attention-distance", "attention-distance"): noisy(lambda each: shape(TRAININGS, each, s))},
        ),
        13: lambda: Plan(
            PATCHES,
            {
                ("attention-shares", "entropy"): noisy(
                    lambda each: 0.5 + 0.2 * s * (each.spec.patch_size == 32)
                )
            },
        ),
        14: lambda: Plan(
            "mae-b16 mae-l16 mae-h14 dino-s16 dino-b16 fs-s16 fs-b16 fs-l16 clip-b16 clip-l14",
            cka=alike(lambda first, _: 0.5 + 0.2 * s * (first.method in ("contrast", "reconstruction"))),
        ),
        15: lambda: Plan("mae-b16 beit-b16", cka=alike(lambda each, _: cross(each, s) if each == _ else 0.0)),
        16: lambda: Plan(
            SIZES, cka=alike(lambda each, _: cross(each, s if size(each) else -s) if each == _ else 0.0)
        ),
        17: lambda: Plan(
            SUPERVISED,
            {("residual-cka", "cka-skip-branch"): noisy(lambda each: 0.5 - 0.3 * s * (depth(each) > 0.6))},
        ),
        18: lambda: Plan(
            "beit-b16 beit-l16", hits={"cluster-part": hits(lambda each: 0.4 + 0.3 * s * size(each))}
        ),
        19: lambda: Plan(
            f"{SIZES} {PATCHES}",
            hits=dict.fromkeys(
                ("knn", "davis"),
                hits(
                    lambda each: (
                        0.4
                        + 0.3 * s * (size(each) or (each.spec.patch_size == 16 and each.method == "labels"))
                    )
                ),
            ),
        ),
        20: lambda: Plan(RIVALS, hits={task: ranked(s)(task) for task in TASKS}),
        21: lambda: Plan(RESNET, cka=alike(lambda each, _: 0.5 - 0.3 * s * is_conv(each))),
        22: lambda: Plan(RESNET, cka=alike(nearest(s), 0.001)),
        23: lambda: Plan(
            PART,
            {
                ("attention-distance", "distance-range"): noisy(lambda each: 0.5 - 0.3 * s * depth(each)),
                ("attention-distance", "attention-distance-ratio"): lambda each, generator: generator.normal(
                    0.7 + 0.2 * s * fewer(each), 0.1, (each.depth, 4)
                ),
            },
        ),
        24: lambda: Plan(
            RESNET,
            {("receptive-field", "erf-half-radius"): noisy(lambda each: 0.2 - 0.1 * s * is_conv(each))},
        ),
        25: lambda: Plan(
            RESNET,
            {
                ("residuals", "norm-ratio", "cls"): noisy(lambda each: 3 - s * depth(each)),
                ("residuals", "norm-ratio", "patch"): noisy(lambda each: 2 + s * depth(each)),
                ("residuals", "norm-ratio", "branch"): noisy(lambda each: 2 - 0.5 * s),
            },
        ),
        26: lambda: Plan(
            CUT,
            cka=alike(
                lambda first, second: (
                    split(World(Plan(CUT)).networks[0], first, s) if first == second else 0.0
                )
            ),
            hits={"knn": hits(lambda each: 0.5 - 0.2 * s * ("without" in each.spec.supervision))},
        ),
        27: lambda: Plan(AVERAGED, arrays={("localisation", "token_patch"): places(s)}),
        28: lambda: Plan(AVERAGED, arrays={("token-probes", "token_accuracy"): tokens(s)}),
        29: lambda: Plan(PART, cka=alike(lambda first, _: (0.5 - 0.4 * s * (depth(first) - 0.5))[:, None])),
        30: lambda: Plan(
            PART, hits={"fewshot": hits(lambda each: 0.4 + (0 if fewer(each) else s) * _middle(each))}
        ),
        31: lambda: Plan(
            "fs-b16 mae-b16",
            cka=alike(lambda *_: (0.95, 0.98, 0.5)[s], 0.005),
            hits={"knn": hits(lambda _: 1.0)},
        ),
        32: lambda: Plan(
            METHODS,
            hits={
                "knn": hits(peak(0.95 if s > 0 else 0.4)),
                **dict.fromkeys(("davis", "spair"), hits(peak(0.6))),
            },
        ),
        33: lambda: Plan(
            "clip-b16 metaclip-b16",
            hits={"davis": hits(lambda each: 0.7 - 0.4 * ((depth(each) == 1) == (s > 0)) * abs(s))},
        ),
    }
    table[12] = lambda: Plan(
        "fs-s16 fs-b16 fs-l16 mae-b16 mae-l16 mae-h14 clip-b16 clip-l14 dino-s16 dino-b16", table[4]().curves
    )
    return table[number]()


def _is_best(network: KnownNetwork, task: int, sign: int) -> bool:
    """Whether a network is the best in a task: each in one, the first in all, or none."""
    place = ["FS", "DINO", "MAE"].index(network.spec.family)
    return sign != 0 and place == (task if sign > 0 else 0)


def _middle(network: KnownNetwork) -> Array:
    return 0.3 * (abs(depth(network) - 0.54) < 0.17)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
@pytest.mark.parametrize(("sign", "verdict"), [(1, "holds"), (-1, "fails")])
def test_a_planted_answer_is_found(claim: Claim, sign: int, verdict: str) -> None:
    found = judge_claim(claim, World(plan(claim.number, sign)))
    assert found.verdict == verdict, (found.reason, found.effect)


NOISE = 40


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_a_claim_does_not_hold_on_noise(claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 worlds at most 5 % hold: records with layers or networks exchanged, or nothing in them."""
    monkeypatch.setattr(readings, "CONTEST_DRAWS", 100)
    monkeypatch.setattr(readings, "MANY_DRAWS", 100)
    exchanged = claim.null in (LAYERS, LABELS)
    null, sign = (claim.null, 1) if exchanged else (LAYERS, 0)
    worlds = (World(plan(claim.number, sign), seed, null) for seed in range(NOISE))
    verdicts = [judge_claim(claim, world).verdict for world in worlds]
    assert "not measured" not in verdicts
    assert verdicts.count("holds") <= 0.05 * NOISE

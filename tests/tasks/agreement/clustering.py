"""Clustering against the published purity and scikit-learn."""

from collections.abc import Iterator

import numpy as np

from layerboard.tasks.clustering.kmeans import kmeans_starts
from layerboard.tasks.metrics.partitions import ari, nmi, purity
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import ITSELF, OFFICIAL, OWN, Agreement, Finding, close, exact, gathered
from tests.tasks.standard import KMEANS

CASES = golden.cases("clustering")
LABELS = [name for name, case in CASES.items() if case["builder"] == "labelings"]
MEASURES = {"purity": purity, "nmi": nmi, "ari": ari}
SLACK = 0.01  # partitions may differ between versions of scikit-learn at one seed


def compare(name: str) -> list[Finding]:
    """Findings of one case."""
    if name in LABELS:
        return gathered(labels(name))
    return gathered(separated(name) if name == "kmeans_separated_400x16" else spread(name))


def labels(name: str) -> Iterator[Finding]:
    """Indices of a given partition."""
    data, expected = golden.build(CASES[name]), CASES[name]["expected"]
    before = data["classes"].copy()
    for key, measure in MEASURES.items():
        value = measure(data["classes"], data["clusters"])
        yield close(_title(key), OFFICIAL, value, expected["official"][key], 1e-12)
    found = purity(data["classes"], data["clusters"])
    yield close(_title("purity"), OWN, found, expected["own_purity"], 1e-12)
    yield exact("labels left as they were", ITSELF, data["classes"], before)


def separated(name: str) -> Iterator[Finding]:
    """k-means where every version and seed finds the same partition."""
    data, expected = golden.build(CASES[name]), CASES[name]["expected"]
    k = CASES[name]["params"]["n_clusters"]
    found = kmeans_starts(data["features"], k, **KMEANS)[0]
    for key, measure in MEASURES.items():
        value = measure(data["classes"], found)
        yield close(_title(key), OFFICIAL, value, expected["official_n_init_10"][key], 1e-12)
    sizes = expected["official_n_init_10_cluster_sizes_sorted"]
    yield exact("sizes of the clusters", OFFICIAL, sorted(np.bincount(found, minlength=k)), sizes)


def spread(name: str) -> Iterator[Finding]:
    """k-means where partitions differ: within the range of 20 seeds, and the same twice."""
    data, expected = golden.build(CASES[name]), CASES[name]["expected"]
    k = CASES[name]["params"]["n_clusters"]
    found = kmeans_starts(data["features"], k, **KMEANS)[0]
    centres = np.stack([data["features"][found == cluster].mean(axis=0) for cluster in range(k)])
    values = {"inertia": float(((data["features"] - centres[found]) ** 2).sum())}
    values |= {key: measure(data["classes"], found) for key, measure in MEASURES.items()}
    for key, span in expected["range_over_random_state_0_to_19_n_init_10"].items():
        beyond = abs(values[key] / np.clip(values[key], *span) - 1)
        what = f"{_title(key)}, beyond the range over 20 seeds, relative"
        yield Finding(what, OFFICIAL, float(beyond), SLACK)
    yield exact("the same partition twice", ITSELF, kmeans_starts(data["features"], k, **KMEANS)[0], found)


def _title(key: str) -> str:
    return key if key in ("purity", "inertia") else key.upper()


AGREEMENT = Agreement(
    title="Clustering",
    module="tasks/clustering/kmeans.py",
    file="clustering",
    recipes={
        "contiguous_labels": "seven classes, each split over two clusters, a third of the samples astray",
        "gaps_in_labels": "class numbers with gaps, as COCO has them",
        "one_cluster": "three classes in one cluster",
        "kmeans_600x32": "ten overlapping Gaussian classes, k = 10: partitions differ between seeds",
        "kmeans_separated_400x16": "seven classes far apart, k = 7: all seeds find one partition",
    },
    compare=compare,
    notes=(
        "Purity is official by the published code; NMI (arithmetic mean) and ARI are scikit-learn's, which "
        "this package calls, so that comparison only guards the call and the version.",
        "k-means is scikit-learn's, too. At one seed partitions may differ between its versions: where they "
        "do, scores are compared with the range of 20 seeds, 1 % allowed.",
        "By choice: the caller's labels are never changed; the official purity renumbers labels with gaps in "
        "the caller's array.",
        "By choice: always ten starts; the published code leaves their number to the library, where it fell "
        "from ten to one.",
    ),
)

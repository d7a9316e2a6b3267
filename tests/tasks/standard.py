"""The standard protocol's numbers, as the metrics take them."""

from dataclasses import asdict

from tasks.protocols import STANDARD

TEMPERATURE = STANDARD.knn.temperature
KMEANS = {"seed": STANDARD.clusters.seed, "n_init": STANDARD.clusters.n_init}
HEARD = STANDARD.propagation.heard
PROPAGATION = asdict(HEARD)

"""The standard protocol's numbers, as the metrics take them."""

from dataclasses import asdict

from tasks.protocols import STANDARD
from tasks.registry import config_of

TEMPERATURE = config_of(STANDARD, "knn").temperature
KMEANS = {
    "seed": config_of(STANDARD, "cluster-image").seed,
    "n_init": config_of(STANDARD, "cluster-image").n_init,
}
HEARD = config_of(STANDARD, "davis").heard
PROPAGATION = asdict(HEARD)

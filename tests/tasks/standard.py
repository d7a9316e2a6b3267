"""The standard protocol's numbers, as the metrics take them."""

from tasks.protocols import STANDARD

TEMPERATURE = STANDARD.knn.temperature
KMEANS = {"seed": STANDARD.clusters.seed, "n_init": STANDARD.clusters.n_init}
PROPAGATION = {
    name: getattr(STANDARD.propagation, name) for name in ("n_last_frames", "topk", "radius", "temperature")
}

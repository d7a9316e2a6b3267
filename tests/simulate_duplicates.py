"""How often the interval of a precision of `duplicates` holds that of all listed pairs of the folder.

    python -m tests.simulate_duplicates

A folder has some 600 images in groups of copies; groups of one scene look alike, and some are labelled.
"""

import numpy as np

from layerboard.tasks.audit.threshold import CandidatePairs, DuplicateThreshold

IMAGES, SCENE, DIM, FOLDERS = 600, 3, 6, 70
FAR = 1.0  # distance up to which pairs are candidates


def folder(copies: int, random: np.random.Generator) -> tuple[np.ndarray, CandidatePairs]:  # type: ignore[type-arg]
    """Group of each image, [images], and candidate pairs; half of the groups have 2 to ``copies`` images."""
    sizes = np.where(random.random(IMAGES) < 0.5, random.integers(2, copies + 1, IMAGES), 1)
    sizes = sizes[: np.searchsorted(sizes.cumsum(), IMAGES) + 1]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    scenes = random.normal(size=(len(sizes) // SCENE + 1, DIM))
    centres = scenes[random.integers(0, len(scenes), len(sizes))] + 0.35 * random.normal(
        size=(len(sizes), DIM)
    )
    edits = 0.18 * np.exp(0.5 * random.normal(size=(len(groups), 1)))
    images = centres[groups] + edits * random.normal(size=(len(groups), DIM))
    pairs = np.stack(np.triu_indices(len(groups), 1), axis=1)
    apart = np.linalg.norm(images[pairs[:, 0]] - images[pairs[:, 1]], axis=1)
    pairs, apart = pairs[apart < FAR], apart[apart < FAR]
    return groups, CandidatePairs(pairs, apart, 0.2 * apart, np.zeros(len(pairs), np.bool_))


def covered(copies: int, labelled: float, precision: float) -> tuple[float, float]:
    """Share of folders whose interval holds the true precision, and whose lower end is below it."""
    random, held = np.random.default_rng(1), []
    for _ in range(FOLDERS):
        groups, pairs = folder(copies, random)
        count = int(groups.max()) + 1
        known = np.isin(groups, random.choice(count, int(labelled * count), replace=False))
        things = np.where(known, groups.astype(str), "")
        threshold = DuplicateThreshold.of([0.5]).labelled(pairs, things, precision)
        if threshold.judged:
            listed = groups[pairs.within(threshold.share).pairs]
            true = float((listed[:, 0] == listed[:, 1]).mean())
            low, high = threshold.interval
            held.append((low <= true <= high, low <= true))
    inside, above = np.mean(held, axis=0).tolist()
    return inside, above


def main() -> None:
    for copies in (2, 5):
        for labelled in (0.1, 0.3, 1.0):
            for precision in (0.8, 0.95):
                inside, above = covered(copies, labelled, precision)
                print(copies, labelled, precision, f"{100 * inside:.0f} % {100 * above:.0f} %", flush=True)


if __name__ == "__main__":
    main()

"""Exact nearest neighbours, beside faiss and beside torch's product with a top-k."""

from collections.abc import Iterator

import faiss
import numpy as np
import torch

from perf.rounds import Setting, take_turns
from perf.rows import Row
from tasks.metrics.neighbours import nearest
from tasks.protocols import STANDARD
from tasks.registry import config_of

CHUNK = 500
"""Queries that torch takes at once."""


def neighbour_rows(setting: Setting) -> Iterator[Row]:
    """100,000 vectors of 384 channels, 2,000 queries, as many neighbours as the most that k-NN votes with."""
    bank, queries = (2000, 100) if setting.quick else (100_000, 2000)
    k = max(config_of(STANDARD, "knn").k, *config_of(STANDARD, "knn").others)
    random = np.random.default_rng(0)
    vectors, asked = (random.standard_normal((n, 384), np.float32) for n in (bank, queries))
    for values in (vectors, asked):
        values /= np.linalg.norm(values, axis=1, keepdims=True)
    place = setting.device if setting.device.type == "cuda" else None
    there, wanted = torch.from_numpy(vectors).to(setting.device), torch.from_numpy(asked).to(setting.device)
    rounds = take_turns(
        {
            "faiss": lambda: faiss.knn(asked, vectors, k, metric=faiss.METRIC_INNER_PRODUCT),
            "torch": lambda: [(part @ there.T).topk(k) for part in torch.split(wanted, CHUNK)],
            "ours": lambda: nearest(vectors, asked, k, device=place),
        },
        max(1, setting.rounds // 2),
        setting.device,
    )
    size = f"{bank:,} x 384, {queries:,} queries, k {k}"
    faster = min(("faiss", "torch"), key=rounds.milliseconds)
    yield Row(f"k-NN, {size}, faiss over torch", rounds.ratio("faiss", "torch"), figures=rounds.figures())
    note = "unit lengths, ties and duplicates included"
    yield Row(f"the same, ours over {faster}, which is faster here", rounds.ratio("ours", faster), note=note)

"""Words that people use for what has another name here: the likely meaning of a wrong name. Imports nothing.

They are few: other names are met by spelling alone (`zoo.errors.likely`). A word is the part that its forms
share, in lower case and without blanks and hyphens: ``classif`` stands for classification and classifier. Of
several that are in a wrong name, the longest decides.
"""

from collections.abc import Mapping, Sequence


def _by_word(meanings: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """The names that each word may mean, from the words for each of these choices of names."""
    return {word: names.split() for names, words in meanings.items() for word in words.split()}


TASK_WORDS = _by_word(
    {
        "knn fewshot linear": "classif",
        "knn": "neighbour neighbor",
        "linear fewshot": "prob",
        "segment": "segment",
        "anomaly cluster-object": "detect",
        "anomaly": "ood outlier",
        "instances": "duplicate dedup",
        "instances retrieval": "search",
        "davis": "track video",
        "spair": "keypoint correspond",
        "cluster-image cluster-object cluster-part": "cluster",
        "cost": "speed latency",
    }
)

WORDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "task": TASK_WORDS,
    "option": _by_word(
        {
            "backbones": "model",
            "weights backbones": "checkpoint",
            "images data": "folder dataset",
            "labels": "annotation",
            "compress": "pca quanti",
            "transform": "whiten",
            "input_size": "resol",
            "device": "gpu",
            "again": "force overwrite",
            "plan": "dryrun",
            "campaign": "config",
            "floor": "baseline",
        }
    ),
    "command": _by_word({"run": "bench", "show recommend": "best", "features": "embed extract"}),
    "value": _by_word({"float16": "fp16", "mean": "average", "attention": "attn"}),
}
"""The tables by what a name should be the name of."""

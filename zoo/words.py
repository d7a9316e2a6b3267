"""Words that people use for what has another name here: the likely meaning of a wrong name. Imports nothing.

A word is the part that its forms share, in lower case and without blanks and hyphens: ``classif`` stands for
classification and classifier. Of several that are in a wrong name, the longest decides.
"""

from collections.abc import Mapping, Sequence


def _by_word(meanings: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """The names that each word may mean, from the words for each of these choices of names."""
    return {word: names.split() for names, words in meanings.items() for word in words.split()}


TASK_WORDS = _by_word(
    {
        "knn fewshot linear": "classif recogni accuracy top1 imagenet",
        "knn fewshot": "zeroshot",
        "knn": "neighbour neighbor",
        "linear fewshot": "prob logistic svm",
        "fewshot": "lowshot",
        "segment cluster-object": "segment",
        "segment": "semanticseg miou ade20k voc",
        "segment spair": "dense",
        "anomaly cluster-object": "detect",
        "cluster-object": "coco",
        "instances": "copydetect duplicate dedup metriclearning verification",
        "instances retrieval": "similar search retriev reid",
        "retrieval": "landmark oxford paris",
        "davis": "track video videoobject videoseg vos propagat",
        "spair": "keypoint correspond match pose pck",
        "anomaly": "ood outofdistribution outlier novelty defect inspection mvtec",
        "regress": "regress counting age",
        "multilabel": "tagging multilabel attribute",
        "cluster-image cluster-object cluster-part": "cluster kmeans group unsupervised",
        "cluster-part": "parts",
        "cka": "representation kernelalign",
        "drift": "precision quanti robust",
        "attention-maps attention-distance attention-shares": "attention",
        "attention-maps": "rollout",
        "saliency": "salien",
        "receptive-field": "receptive",
        "position-audit": "position",
        "label-free": "rankme collapse",
        "cost": "speed latency throughput flops memory parameter time",
        "inside": "analys interpret",
    }
)

OPTION_WORDS = _by_word(
    {
        "backbones": "model net arch encoder extractor",
        "weights backbones": "checkpoint ckpt pretrained",
        "weights": "statedict",
        "images": "photo picture img",
        "images data": "folder path dir dataset",
        "images input_size": "input",
        "data": "root",
        "labels": "annotation csv metadata classes",
        "tasks suite": "benchmark",
        "tasks": "eval metric",
        "layers": "block depth",
        "poolings": "pool cls",
        "poolings taps": "token",
        "taps": "hook norm",
        "fuse": "concat ensemble combine",
        "compress": "pca quanti int8 reduc project",
        "transform": "whiten normali preprocess",
        "input_size": "size resol resize imagesize imgsize crop",
        "batch_size": "bs batch",
        "dtype": "precision half fp16 bf16 amp",
        "device": "gpu cuda cpu",
        "workers": "thread job proc numworkers",
        "engine": "ray distributed",
        "output": "out outputdir save result",
        "cache": "cachedir",
        "plan": "dry estimate",
        "again": "force overwrite rerun",
        "shots": "kshot",
        "limit": "max subset sample numimages",
        "floor": "baseline random",
        "copies": "duplicate dedup",
        "target": "regress",
        "log": "tracker wandb mlflow tensorboard",
    }
)

COMMAND_WORDS = _by_word(
    {
        "run": "bench eval start plan measure speed latency",
        "run check": "test",
        "list": "ls models backbones tasks suites protocols info",
        "show": "result",
        "show recommend": "best",
        "recommend reproduce": "literature published paper",
        "leaderboard show": "table",
        "report": "plot html chart site web badge feed",
        "features": "encod embed extract feature vector find search similar retriev query",
        "recommend": "choose suggest select",
        "compare": "diff finetun port",
        "export": "onnx tensorrt",
        "export pack": "convert",
        "submission report": "upload publish push",
        "check": "validate split duplicate audit dedup copies neardup curate",
        "look": "visual attention",
        "look show": "view",
    }
)

VALUE_WORDS = _by_word(
    {
        "float32": "fp32 full single",
        "float16": "fp16 half",
        "bfloat16": "bf16",
        "amp-bfloat16": "mixed amp",
        "mean": "average avg gap",
        "mean patchwise": "patch",
        "cls": "class",
        "cls mean": "token",
        "class": "classif",
        "labels": "multilabel tag",
        "number": "regress float",
        "attention": "attn",
        "query": "q",
        "key": "k",
        "value": "v",
        "query key value": "qkv",
        "mlp": "ffn",
        "mlp_hidden": "hidden",
        "block mid": "residual",
        "block": "output",
        "last4": "last",
        "last4 quarters": "four",
        "quarters": "quarter",
        "all": "every",
        "processes": "multiproc",
        "ray": "slurm cluster",
        "huggingface": "hf transformers",
        "cuda": "gpu nvidia",
        "backbones": "model",
        "suites": "dataset benchmark",
    }
)

WORDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "task": TASK_WORDS,
    "option": OPTION_WORDS,
    "command": COMMAND_WORDS,
    "value": VALUE_WORDS,
}
"""The tables by what a name should be the name of."""

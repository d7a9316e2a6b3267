"""Who gathers the class: few-shot probes of the class token, of averages and of single tokens, side by side.

Source: Raghu et al., NeurIPS 2021, section 7, figures 10 and 11b.
"""

import pandas as pd

from leaderboards.choices.selection import newest

FEATURES = {
    ("fewshot", "top1-10shot", "cls"): "cls",
    ("fewshot", "top1-10shot", "mean"): "mean",
    ("fewshot", "top1-10shot", "all"): "all",
    ("token-probes", "fewshot-10", "token"): "token",
    ("token-probes", "fewshot-10-first", "token"): "first token",
}
"""For each task, metric and pooling the column that it stands in."""

PLACE = ["backbone", "family", "depth", "dataset", "protocol", "layer", "tap"]


def gathering(records: pd.DataFrame) -> pd.DataFrame:
    """The 10-shot probes of every layer by what they see.

    ``cls``, ``mean`` and ``all`` are tested on the validation images; ``token`` (the mean over tokens) and
    ``first token`` (row 0, column 0) learn from the probe subset and are tested on the rest of it. Their
    levels differ for that reason, too: compare how each goes on over the layers.

    Args:
        records: Columns of `Record`, in any order.

    Returns:
        Columns `PLACE`, then those of `FEATURES` that any layer has, in percent, NaN where a layer has none;
        sorted by `PLACE`. Empty where nothing was probed.
    """
    rows = newest(records)
    keys = zip(rows["task"], rows["metric"], rows["pooling"], strict=True)
    rows = rows.assign(feature=[FEATURES.get(key, "") for key in keys])
    rows = rows[(rows["feature"] != "") & rows["value"].notna()]
    if rows.empty:
        return pd.DataFrame(columns=PLACE)
    table = rows.pivot_table(index=PLACE, columns="feature", values="value", aggfunc="last").reset_index()
    features = [feature for feature in FEATURES.values() if feature in table]
    return pd.DataFrame(table[[*PLACE, *features]]).rename_axis(columns=None)

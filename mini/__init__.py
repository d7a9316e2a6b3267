"""The mini world: a renderer of small datasets, training of small backbones on them, and their weights.

Only the suites that name it and the training command import this package. Everything else reads its folders
of data and weights like any others.
"""

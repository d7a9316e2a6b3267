"""The mini world: the data of small datasets, and backbones that were trained on such.

Only the suites that name it import this package. Everything else reads its data and weights like any others.
"""

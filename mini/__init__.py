"""The mini world: a renderer of small datasets, trainings of small backbones on them, their weights.

A leaf: the suites that name it and the command that trains import it; everything else reads its folders of
data and weights like anybody's.
"""

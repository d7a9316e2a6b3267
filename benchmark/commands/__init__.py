"""The commands and Python's functions, each in one file: its options, what it does, and how it prints.

Files import what is heavy inside functions, so that ``--help`` and ``list`` stay fast.
"""

"""The operations on tasks (`scheduler.py`), and the sweep that repairs tasks (`sweeper.py`).

May import `engine.pull` and what is below it.
"""

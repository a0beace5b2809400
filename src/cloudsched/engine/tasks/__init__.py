"""The operations on tasks (`scheduler.py`), and the sweep that repairs tasks (`sweeper.py`).

May import the rest of the engine.
"""

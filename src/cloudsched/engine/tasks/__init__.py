"""What callers do with tasks (`scheduler.py`), and the sweep that repairs them (`sweeper.py`).

May import the engine's other rooms.
"""

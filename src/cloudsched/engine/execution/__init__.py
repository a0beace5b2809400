"""Deliveries of dispatches, from authentication to the commit of the outcome.

`executor.py` decides what a delivery does, `attempts.py` runs the attempt. May import `engine.child_tasks` and what is
below it.
"""

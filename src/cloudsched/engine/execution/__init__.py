"""Deliveries of dispatches, from authentication to the commit of the outcome.

`executor.py` decides what a delivery does, `invoke.py` calls the handler. May import `engine.child_tasks` and what is
below it.
"""

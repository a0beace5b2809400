"""One delivery of a dispatch, from authentication to the commit of its outcome.

`executor.py` decides what a delivery does, `attempts.py` runs the attempt. May import every other room of the engine
but `tasks`.
"""

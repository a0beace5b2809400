"""The operations on tasks (`scheduler.py`): one by one, in batches, and as the code declares them."""

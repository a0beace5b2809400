"""The emulated service as pure code: queues, tasks, retries, rates and faults.

Time and chance are arguments, and there is no I/O. Imports nothing else of cloudsched.
"""

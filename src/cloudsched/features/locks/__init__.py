"""Locks: runs of tasks that name the same key take turns, as many at once as the key allows.

It adds the fields of the key, the option that acquires and releases it with a run, the documents of locks
and of the runs that wait for them in both stores, and what the API shows of them.
"""

"""From what somebody says to a task that they can confirm: nothing here stores anything.

`request` bounds what is said, `service` is the pipeline, `tokens` binds what was shown to what is stored.
"""

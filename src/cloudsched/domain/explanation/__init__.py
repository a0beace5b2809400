"""Explain why a task runs when it does, or does not run, in sentences from the content of its documents.

`findings` holds the answer's form, `explain` finds the reasons, `at_instant` those of another day.
"""

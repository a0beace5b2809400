"""Why a task runs when it does, or does not run: sentences from what its documents say.

`findings` holds the answer's form, `explain` finds the reasons, `at_instant` those of another
day.
"""

"""From a person's words to a task that they can confirm. Nothing here stores anything.

`request` limits the words, `service` is the pipeline, and `draft_tokens` binds the stored task to the shown draft.
"""

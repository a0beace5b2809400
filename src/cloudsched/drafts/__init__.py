"""Drafts: from a person's words to a task that they can confirm. Making one stores nothing.

It adds schedules in plain words wherever the API and the app take a schedule, drafts and previews,
language models that read what the grammar does not, and the handler `assistant`.
"""

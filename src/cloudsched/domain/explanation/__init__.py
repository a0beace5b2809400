"""Explain why a task runs when it does, or does not run, in sentences from the content of its documents."""

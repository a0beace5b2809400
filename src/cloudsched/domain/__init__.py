"""The pure core: documents, recurrence, and the transitions between states."""

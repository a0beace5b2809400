"""The engine loads documents, decides with the domain's functions, commits, and dispatches."""

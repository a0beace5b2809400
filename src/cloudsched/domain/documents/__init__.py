"""The documents that are stored (tasks, executions, journals, policies) and their limits."""

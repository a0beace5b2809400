"""What a task may have beside the core, a file for each: journals, failure hooks, usage, plans of time zones."""

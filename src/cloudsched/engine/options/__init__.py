"""Options of tasks, a file for each: journals, failure hooks, usage, plans of time zones."""

"""The usage of owners: summed up from the counts of their tasks, and limited by a feature."""

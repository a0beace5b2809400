"""Features: what a task may have beside the kernel, each in a folder here. The table has satellites, too."""

"""HOW it happens, through ports: the scheduler, the executor, the sweep."""

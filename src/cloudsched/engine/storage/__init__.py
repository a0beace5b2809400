"""What all stores share: pages of lists, the rows that fill them, and the tasks that are known already."""

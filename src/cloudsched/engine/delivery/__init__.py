"""Deliveries: the tasks that carry results to people, how they are sent and what became of them."""

"""Deliveries: the tasks that carry results to people, how they are sent and what became of them.

May import `engine.owners` and what is below it. A sender is handed in. `engine.state` creates deliveries.
"""

"""Deliveries: the tasks that carry results to people, how they are sent and what became of them.

May import people, handlers, state, ports and the domain; a sender is handed in. `engine.state` creates deliveries.
"""

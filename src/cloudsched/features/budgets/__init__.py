"""Budgets: how many queries an owner's tasks may use in a month. They are paused once it is used up.

It adds the document of a budget, the field by which tasks know that their owner has one, the option that
asks before each start, what enforces budgets after a sweep, and the operations of the API.
"""

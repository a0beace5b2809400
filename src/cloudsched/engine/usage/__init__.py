"""The usage of owners: summed up from what their tasks have counted, and limited by budgets.

May import `engine.state` and what is below it.
"""

"""Deliveries: the tasks that carry results to people, from the success that creates them to the sender's answer.

May import ports, documents and transitions; a sender and the people are handed in.
"""

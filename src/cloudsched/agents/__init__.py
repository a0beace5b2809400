"""Agents: tools by which a language model schedules tasks, over the Model Context Protocol.

It adds the command ``cloudsched mcp``, which is a client of the HTTP API like any other.
"""

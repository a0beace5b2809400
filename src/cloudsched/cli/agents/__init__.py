"""Tools for agents, by the Model Context Protocol (MCP), over the HTTP API's client; see ``docs/how-to/agents.md``.

The room imports the client, the errors, and the official SDK `mcp`, which the extra ``mcp`` brings.
"""

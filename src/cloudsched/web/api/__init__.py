"""The HTTP API: operations, request bodies, responses, problems and the OpenAPI document.

May import `web.auth`, the app and everything below it.
"""

"""Language models over HTTP: Gemini's own API, and the one of OpenAI that many servers speak.

Each adapter is a `Model` (`cloudsched.engine.ports.model`). The room imports the port, the errors, and, when the first
model is asked, `requests` and `google-auth`.
"""

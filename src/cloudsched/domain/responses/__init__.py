"""The API's responses, for the engine, the drafts, the API and its client."""

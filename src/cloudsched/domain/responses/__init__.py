"""The API's responses, for all who make, send or read them: the engine and the drafts, the API and its client."""

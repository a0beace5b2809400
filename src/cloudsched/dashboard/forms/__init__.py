"""The forms of pages: what they ask for, as fields, and what was typed, as JSON for the API."""

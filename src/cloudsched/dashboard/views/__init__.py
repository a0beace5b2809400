"""The views: each asks the API, and adds what its template shows beside the answers."""

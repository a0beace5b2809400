"""Workers: processes that fetch work, at the store or through the API, and run it."""

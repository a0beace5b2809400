"""Workers: processes that fetch work, at the store or through the API, and run it.

`worker.py` polls, `slot.py` supervises one attempt, and a `WorkSource` says where claimed work comes from. May import
the app, the client, the engine and the domain.
"""

"""The store on Firestore: documents, queries, listeners and the emulator.

May import `adapters.google`, `engine.ports` and the domain.
"""

"""The store on Firestore: documents, queries, listeners and the emulator."""

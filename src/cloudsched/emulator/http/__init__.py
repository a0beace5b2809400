"""The one port that speaks gRPC, REST and the control API.

May import `emulator.api`, `emulator.runtime` and `emulator.model`.
"""

"""The one port that speaks gRPC, REST and the control API."""

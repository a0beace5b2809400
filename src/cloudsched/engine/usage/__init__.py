"""The usage of owners: summed up from what their tasks have counted, and limited by what a feature may add."""

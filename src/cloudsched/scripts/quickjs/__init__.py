"""The script interpreter on QuickJS: one sandboxed process for each script."""

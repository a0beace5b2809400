"""A table of the caller's own."""

from __future__ import annotations

from sqlalchemy import Column, MetaData, String, Table

ORDERS = Table("orders", MetaData(), Column("id", String(128), primary_key=True))

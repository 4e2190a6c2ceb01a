"""Importers: each reads one format into the neutral store."""

from trnscope.ingest.open import open_trace

__all__ = ["open_trace"]

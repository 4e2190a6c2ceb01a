"""Results as text, JSON and one sentence; nothing is computed here."""

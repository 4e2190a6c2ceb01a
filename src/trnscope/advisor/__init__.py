"""The doctor: rules that name a cause, and a replay that says what removing it would give back."""

"""Foreign session files."""

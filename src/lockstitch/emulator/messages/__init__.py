"""Anthropic Messages. The door is `http`; everything else is pure."""

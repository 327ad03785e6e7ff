"""Chat Completions. The door is `http`; everything else is pure."""

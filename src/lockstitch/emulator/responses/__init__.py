"""The Responses and Conversations APIs: what enters a context, what is said, what is kept.

The doors are `http`, `websocket` with its `connection`, and `conversations_http`; the rest is
pure."""

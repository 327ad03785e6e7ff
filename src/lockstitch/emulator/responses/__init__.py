"""The Responses and Conversations APIs: what enters a context, what is said, what is kept.

The doors are `http`, `websocket` and `conversations_http`; everything else is pure."""

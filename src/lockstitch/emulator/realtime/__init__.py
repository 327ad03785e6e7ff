"""The Realtime API: one session on one WebSocket.

The doors are `websocket` and `connection`; everything else is pure."""

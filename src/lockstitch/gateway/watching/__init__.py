"""What the gateway tells of itself: logs, metrics, traces."""

"""What clients see: events in order, where they go, and what is kept of them for a while."""

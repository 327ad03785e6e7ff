"""The emulated model: what it says, by a script or by its own small brain."""

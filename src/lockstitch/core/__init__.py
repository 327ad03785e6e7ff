"""The pure core: no I/O, no clock, no randomness, no logging. See docs/architecture.md."""

"""Lockstitch inside other frameworks. Each module needs the extra that is called like it."""

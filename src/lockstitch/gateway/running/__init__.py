"""Runs a gateway: sockets, processes, signals, a configuration that changes."""

from lockstitch.gateway.running.contract import CannotServe, Runnable
from lockstitch.gateway.running.loops import run
from lockstitch.gateway.running.serving import serve

__all__ = ["CannotServe", "Runnable", "run", "serve"]

"""What the gateway is told: read from a file, options and the environment, and validated."""

from lockstitch.gateway.config.errors import ConfigError, Problem
from lockstitch.gateway.config.loading import Options, load
from lockstitch.gateway.config.model import (
    Api,
    Config,
    Guard,
    Key,
    Limits,
    LogSettings,
    MetricsSettings,
    RealtimeSettings,
    Server,
    State,
    Transport,
    UnknownChains,
    Upstream,
)
from lockstitch.gateway.config.secrets import Secret, redacted

__all__ = [
    "Api",
    "Config",
    "ConfigError",
    "Guard",
    "Key",
    "Limits",
    "LogSettings",
    "MetricsSettings",
    "Options",
    "Problem",
    "RealtimeSettings",
    "Secret",
    "Server",
    "State",
    "Transport",
    "UnknownChains",
    "Upstream",
    "load",
    "redacted",
]

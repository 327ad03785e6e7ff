"""The soak: a real gateway, two strict upstreams that keep breaking, many clients that check.

`python -m soak --help` has the options, `running` the order in which things happen. Everything is
on loopback, bounded in time, and stopped in the end."""

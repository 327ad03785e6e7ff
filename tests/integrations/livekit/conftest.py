"""Without LiveKit there is nothing to test here."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("livekit") else ["test_*.py"]

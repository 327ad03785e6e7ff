"""The upstreams of a gateway: by name, in order, each with its own key and lines."""

from __future__ import annotations

from lockstitch.gateway.config.model import Upstream
from lockstitch.gateway.config.secrets import Secret
from lockstitch.gateway.headers import KEYS
from lockstitch.gateway.upstreams import Reached, Upstreams
from tests.gateway.building import QUICK, run

ONE = Upstream(name="one", url="http://127.0.0.1:1/v1", key=Secret("sk-one"))
TWO = Upstream(name="two", url="https://127.0.0.1:1/v1", transport="websocket", state="gateway")


def test_they_are_found_by_name_and_told_in_order():
    async def main():
        both = Upstreams([TWO, ONE], QUICK, keyed=False)
        assert [one.name for one in both] == ["two", "one"]
        assert len(both) == 2
        assert both.get("one").told is ONE
        assert both.get("three") is None
        await both.close()
        await both.close()

    run(main())


def test_each_is_what_it_was_told_to_be():
    async def main():
        one = Reached(ONE, QUICK, keyed=False)
        two = Reached(TWO, QUICK, keyed=False)
        assert one.keeps_state
        assert not two.keeps_state
        assert one.speaks_http
        assert one.speaks_websocket
        assert two.speaks_websocket
        assert not two.speaks_http
        await one.close()
        await two.close()

    run(main())


def test_nothing_that_is_shown_of_one_holds_its_key():
    async def main():
        one = Reached(ONE, QUICK, keyed=True)
        assert "sk-one" not in f"{one!r} {one.told!r} {one.__dict__!r}"
        await one.close()

    run(main())


def test_a_key_in_a_header_of_its_own_is_a_key_that_is_set_for_it():
    async def main():
        told = Upstream(name="azure", url=ONE.url, headers=(("Api-Key", "sk-azure"),))
        azure = Reached(told, QUICK, keyed=True)
        why = "azure said 401 to the key in the headers that are set for it"
        assert [azure.why_refused(status) for status in (200, 401, 404)] == [None, why, None]
        await azure.close()

    run(main())


def test_each_gets_its_own_key_and_no_other():
    async def main():
        client = [("authorization", "Bearer lsk_client"), ("x", "1")]
        one = Reached(ONE, QUICK, keyed=True)
        two = Reached(TWO, QUICK, keyed=True)
        three = Reached(TWO, QUICK, keyed=False)
        assert one.headers(client) == [("x", "1"), ("authorization", "Bearer sk-one")]
        assert [name for name, _ in two.headers(client) if name in KEYS] == []
        assert three.headers(client) == client
        for each in (one, two, three):
            await each.close()

    run(main())

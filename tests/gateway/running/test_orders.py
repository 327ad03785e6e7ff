"""Orders to a worker: what was written is read, and an end is an end."""

from __future__ import annotations

import asyncio

from lockstitch.gateway.config import Config, Secret, Upstream
from lockstitch.gateway.running.orders import Begin, Drain, Reload, Stop, read, written

CONFIG = Config(
    store="memory:", upstreams=(Upstream(name="a", url="http://h", key=Secret("sesame")),)
)
ORDERS = [Begin(config=CONFIG, gateway="a:b", sockets=[3, 4]), Reload(CONFIG), Drain(), Stop()]


def test_orders_arrive_as_they_were_given_and_a_torn_one_is_the_end():
    async def work():
        reader = asyncio.StreamReader()
        sent = b"".join(map(written, ORDERS)) + written(Reload(CONFIG))[:-1]
        for at in range(0, len(sent), 7):
            reader.feed_data(sent[at : at + 7])
        reader.feed_eof()
        return [await read(reader) for _ in range(len(ORDERS) + 1)]

    assert asyncio.run(work()) == [*ORDERS, None]

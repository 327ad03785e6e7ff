from __future__ import annotations

import asyncio

import picows
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from lockstitch.gateway.wire.frames import text_frame
from tests.gateway.wire.playing import close_frame

# Around both places where the form of the length changes.
LENGTHS = [0, 1, 124, 125, 126, 127, 65534, 65535, 65536, 65537, 1_000_000]


def read_by_websockets(data: bytes) -> list[Frame]:
    client = ClientProtocol(parse_uri("ws://x/"), state=State.OPEN, max_size=None)
    client.receive_data(data)
    return [event for event in client.events_received() if isinstance(event, Frame)]


@given(payloads=st.lists(st.text(max_size=300), max_size=5))
def test_texts_come_back_from_websockets_as_they_were(payloads):
    frames = read_by_websockets(b"".join(text_frame(text.encode()) for text in payloads))
    assert [frame.data.decode() for frame in frames] == payloads
    assert all(frame.opcode is Opcode.TEXT and frame.fin for frame in frames)


@pytest.mark.parametrize("length", LENGTHS)
def test_every_length_comes_back_from_websockets(length):
    (frame,) = read_by_websockets(text_frame(b"x" * length))
    assert frame.data == b"x" * length


def test_every_length_comes_back_from_picows_over_a_socket():
    class Listener(picows.WSListener):
        def __init__(self) -> None:
            self.got: list[bytes] = []
            self.over = asyncio.Event()

        def on_ws_frame(self, transport, frame) -> None:
            if frame.msg_type == picows.WSMsgType.CLOSE:
                self.got.append(frame.get_close_message())
                self.over.set()
            else:
                assert frame.msg_type == picows.WSMsgType.TEXT
                self.got.append(frame.get_payload_as_bytes())

    class Server(picows.WSListener):
        def on_ws_connected(self, transport) -> None:
            for length in LENGTHS:
                transport.underlying_transport.write(text_frame(b"x" * length))
            transport.underlying_transport.write(close_frame(1000, "fin"))

    async def read() -> list[bytes]:
        server = await picows.ws_create_server(lambda _: Server(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport, listener = await picows.ws_connect(Listener, f"ws://127.0.0.1:{port}/")
        await asyncio.wait_for(listener.over.wait(), 5)
        transport.disconnect()
        server.close()
        return listener.got

    assert asyncio.run(read()) == [*(b"x" * length for length in LENGTHS), b"fin"]

"""`GET /v1/models`: what this key may use, of all upstreams."""

from __future__ import annotations

import json

import pytest

from tests.gateway.building import both, encoded, gateway, keys, provider, raw, run, upstream


def listed(*names):
    data = [{"id": name, "object": "model"} for name in names]
    return raw(encoded({"object": "list", "data": data}), kind="application/json")


async def models(gw, key=None):
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with gw.client.get(gw.url + "/models", headers=headers) as told:
        assert told.status == 200
        return [model["id"] for model in json.loads(await told.read())["data"]]


def test_the_list_of_one_upstream_passes_as_it_is():
    async def main():
        async with both() as (up, gw):
            up.then(raw(b'{"data": [ {"id":"a"} ]}', kind="application/json"))
            async with gw.client.get(gw.url + "/models?limit=1") as told:
                assert await told.read() == b'{"data": [ {"id":"a"} ]}'
            assert up.asked[0].request.raw_path == "/v1/models?limit=1"

    run(main())


def test_the_lists_of_several_are_one_and_each_model_is_there_once():
    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one"), upstream(two, "two", models=("b*",)))
            async with gateway(*names) as gw:
                one.then(listed("a", "b1"))
                two.then(listed("b1", "b2", "c"))
                assert await models(gw) == ["a", "b1", "b2"]

    run(main())


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"{", kind="application/json"),
        raw(b"[]", kind="application/json"),
        raw(b'{"data":5}', kind="application/json"),
        raw(b'{"data":[5,{"id":5}]}', kind="application/json"),
        raw(b"\xff", kind="text/plain"),
        raw(b"[" * 9000, kind="application/json"),
        raw(b'{"data":[{"id":"x"}]}', status=500, kind="application/json"),
    ],
)
def test_an_upstream_that_has_no_list_does_not_spoil_that_of_the_others(answer):
    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one"), upstream(two, "two"))
            gone = upstream(two, "three", url="http://127.0.0.1:1/v1")
            async with gateway(*names, gone) as gw:
                one.then(listed("a"))
                two.then(answer)
                assert await models(gw) == ["a"]

    run(main())


def test_where_no_upstream_tells_its_models_that_is_not_said_to_be_none():
    async def main():
        async with provider() as one:
            away = upstream(one, "away", url="http://127.0.0.1:1/v1")
            async with gateway(upstream(one, "one"), away) as gw:
                one.then(raw(b'{"error":{"message":"wrong key"}}', status=401))
                async with gw.client.get(gw.url + "/models") as told:
                    assert (told.status, b"wrong key" in await told.read()) == (401, True)
            other = upstream(one, "b", models=("b",), url=away.url)
            async with gateway(away, other) as gw, gw.client.get(gw.url + "/models") as told:
                assert (told.status, b"'away'" in await told.read()) == (502, True)

    run(main())


def test_a_key_sees_only_what_it_may_use():
    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one"), upstream(two, "two", models=("b",)))
            made = (*keys("a", upstreams=("two",)), *keys("b", upstreams=()))
            async with gateway(*names, keys=made) as gw:
                two.then(listed("a", "b"))
                assert await models(gw, "lsk_a") == ["b"]
                assert one.asked == []
                async with gw.client.get(
                    gw.url + "/models", headers={"authorization": "Bearer lsk_b"}
                ) as told:
                    assert told.status >= 400

    run(main())


async def one_model(gw, name, key=None):
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with gw.client.get(f"{gw.url}/models/{name}", headers=headers) as told:
        return told.status, json.loads(await told.read())


MISSING = raw(b'{"error":{"message":"no such model"}}', status=404, kind="application/json")


def test_a_model_is_told_by_the_upstream_that_has_it():
    async def main():
        async with provider() as one, provider() as two, provider() as three:
            some = (upstream(one, "one", models=("a*",)), upstream(two, "two"))
            async with gateway(*some, upstream(three, "three")) as gw:
                two.then(MISSING)
                three.then(raw(b'{"id":"maker/b"}', kind="application/json"))
                assert await one_model(gw, "maker/b?x=1") == (200, {"id": "maker/b"})
                assert one.asked == []
                assert three.asked[0].request.raw_path == "/v1/models/maker/b?x=1"
                two.then(MISSING)
                three.then(MISSING)
                assert await one_model(gw, "c") == (404, {"error": {"message": "no such model"}})

    run(main())


def test_a_model_that_may_be_at_an_upstream_that_is_away_is_not_said_to_be_nowhere():
    async def main():
        async with provider() as one:
            away = upstream(one, "away", url="http://127.0.0.1:1/v1")
            async with gateway(away, upstream(one, "one")) as gw:
                one.then(MISSING)
                status, said = await one_model(gw, "a")
                assert status == 502
                assert "'away'" in said["error"]["message"]

    run(main())


def test_a_model_of_no_pattern_is_asked_for_nowhere():
    async def main():
        async with both(up_models=("a*",)) as (up, gw):
            status, said = await one_model(gw, "b")
            assert (status, said["error"]["code"]) == (404, "model_not_found")
            assert up.asked == []

    run(main())

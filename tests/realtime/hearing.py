"""What a session tells, waited for and picked out; and items for it to be told."""

from __future__ import annotations


async def until(session, wanted):
    """Everything that is told from now on, through the first that is wanted: the type of a server
    event, a class, or a function of it."""
    heard = []
    async for event in session:
        heard.append(event)
        if _is(event, wanted):
            return heard
    raise AssertionError(f"the session ended before {wanted}")


def _is(event, wanted):
    if isinstance(wanted, str):
        return isinstance(event, dict) and event["type"] == wanted
    return isinstance(event, wanted) if isinstance(wanted, type) else wanted(event)


async def come_to(session, text):
    """Until the model has said this to its end."""
    reading = session.__aiter__()
    while not any(
        texts_of(wire) == [text] and wire["status"] == "completed" for wire in session.items
    ):
        await anext(reading)


def saying(text):
    """Is this the end of a response that said so?"""

    def is_it(event):
        if not isinstance(event, dict) or event["type"] != "response.done":
            return False
        return any(texts_of(item) == [text] for item in event["response"]["output"])

    return is_it


def is_done(id):
    """Is this the end of that item?"""

    def is_it(event):
        kind = "conversation.item.done"
        return isinstance(event, dict) and event["type"] == kind and event["item"]["id"] == id

    return is_it


def texts_of(item):
    return [part.get("text", part.get("transcript")) for part in item.get("content", ())]


def types(events):
    return [event["type"] for event in events if isinstance(event, dict)]


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def user(text, id=None):
    wire = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": text}],
    }
    return wire if id is None else {"id": id, **wire}


def assistant(text, id):
    content = [{"type": "output_text", "text": text}]
    return {"id": id, "type": "message", "role": "assistant", "content": content}


def function_call(id, call_id, name="look", arguments="{}"):
    return {
        "id": id,
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def function_output(id, call_id, output="done"):
    return {"id": id, "type": "function_call_output", "call_id": call_id, "output": output}

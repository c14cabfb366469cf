"""A model's answer as server-sent events: exact text, stop strings, and where it stopped.

    pip install streamtok starlette uvicorn
    uvicorn sse_server:app --port 8000
    curl -N 'localhost:8000/answer?prompt=tea'

`sample` stands for your model: it yields ids one by one.
"""

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

import streamtok

ENC = streamtok.get_encoding("cl100k_base")
STOPS = ["\nUser:", "<|im_end|>"]


async def sample(prompt: str) -> AsyncIterator[int]:
    """Ids, as a model generates them."""
    for token in ENC.encode_ordinary(f"You said: {prompt} 👍\nUser: and then?"):
        await asyncio.sleep(0)
        yield token


async def events(ids: AsyncIterator[int]) -> AsyncIterator[str]:
    """One event for each piece of final text, and one for the end."""
    decoder = ENC.stream_decoder(stop=STOPS, skip_special_tokens=True)
    n_ids = 0
    async for token in ids:
        n_ids += 1
        if text := decoder.decode([token]):
            yield f"data: {json.dumps({'text': text})}\n\n"
        if decoder.stopped:
            break
    else:
        if text := decoder.flush():
            yield f"data: {json.dumps({'text': text})}\n\n"
    stopped = decoder.stopped
    end = {"reason": "stop" if stopped else "length", "stop": stopped, "tokens": n_ids}
    yield f"event: end\ndata: {json.dumps(end)}\n\n"


async def answer(request: Request) -> StreamingResponse:
    """The answer to `?prompt=`."""
    prompt = request.query_params.get("prompt", "")
    return StreamingResponse(events(sample(prompt)), media_type="text/event-stream")


app = Starlette(routes=[Route("/answer", answer)])

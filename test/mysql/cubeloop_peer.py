"""CubeLoop's MySQL checkpointer, called from another process: python cubeloop_peer.py URL

Reads one call a line, a JSON list of a name and arguments, and prints one reply a line: {"value": …} or {"error": …}.
"""

import asyncio
import json
import sys

import aiomysql.connection
from cubeloop.checkpointer.mysql import MySQLCheckpointer
from cubeloop.hitl.types import HitlRequest
from cubeloop.providers.base import AssistantMessage, ToolResultMessage, UserMessage

# aiomysql 0.3 writes bytes with a function of PyMySQL that PyMySQL 1.2 has replaced by a text.
if not callable(aiomysql.connection.escape_bytes_prefixed):
    aiomysql.connection.escape_bytes_prefixed = lambda value: "_binary 0x" + value.hex()

ROLES = {"user": UserMessage, "assistant": AssistantMessage, "tool_result": ToolResultMessage}


def dump(messages):
    return [message.model_dump(mode="json") for message in messages]


class Peer:
    def __init__(self, checkpointer):
        self.cp = checkpointer

    async def load(self, thread):
        data = await self.cp.load(thread)
        if data is None:
            return None
        return {"messages": dump(data.messages), "extra": data.extra, "parent_thread_id": data.parent_thread_id}

    async def append(self, thread, messages):
        await self.cp.append(thread, [ROLES[message["role"]].model_validate(message) for message in messages])

    async def append_many(self, thread, name, count):
        for i in range(count):
            await self.cp.append(thread, [UserMessage(content=[{"type": "text", "text": f"{name} {i}"}])])

    async def save_extra(self, thread, extra):
        await self.cp.save_extra(thread, extra)

    async def claim_run(self, thread, run):
        await self.cp.claim_run(thread, run)

    async def mark_run_complete(self, thread, run):
        await self.cp.mark_run_complete(thread, run)

    async def snapshot(self, thread, run):
        return dump(await self.cp.snapshot(thread, after_run_id=run))

    async def fork(self, source, target, run, metadata=None):
        await self.cp.fork(source, target, after_run_id=run, metadata=metadata)

    async def save_pending(self, thread, request, run=None):
        await self.cp.save_pending_request(thread, request and HitlRequest.model_validate(request), run_id=run)

    async def load_pending(self, thread):
        loaded = await self.cp.load_pending(thread)
        return loaded and {"request": loaded[0].model_dump(mode="json"), "run_id": loaded[1]}

    async def clear_pending_if_matches(self, thread, question, run):
        return await self.cp.clear_pending_request_if_matches(thread, question_id=question, run_id=run)

    async def save_answer(self, thread, question, answer, run=None):
        await self.cp.save_hitl_answer(thread, question, answer, run_id=run)

    async def load_answer(self, thread, question, run=None):
        return await self.cp.load_hitl_answer(thread, question, run_id=run)


async def main():
    loop = asyncio.get_running_loop()
    async with MySQLCheckpointer(sys.argv[1]) as checkpointer:
        peer = Peer(checkpointer)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            name, *arguments = json.loads(line)
            try:
                reply = {"value": await getattr(peer, name)(*arguments)}
            except Exception as error:
                reply = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), flush=True)


asyncio.run(main())

"""CubeLoop's SQLite checkpointer on one file, called from another process: python peer.py FILE

Reads one call a line, a JSON list of a name and arguments, and prints one reply a line: {"value": …} or {"error": …}.
"""

import asyncio
import json
import sys

from cubeloop.checkpointer import SQLiteCheckpointer
from cubeloop.hitl.channel import _derive_question_id
from cubeloop.hitl.testing import ScriptedChannel
from cubeloop.hitl.ask_user import AskUserParams, ask_user_tool
from cubeloop.hitl.types import HitlRequest
from cubeloop.providers.base import AssistantMessage, ToolResultMessage, UserMessage

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

    async def clear_answers(self, thread, questions=None, run=None):
        await self.cp.clear_hitl_answers(thread, questions, run_id=run)

    async def question_id(self, kind, payload):
        return _derive_question_id(kind, payload)

    async def ask_ids(self, calls):
        """The ids that the ask_user tool gives to these arguments, one call after the other on one channel."""
        channel = ScriptedChannel([{}] * len(calls))
        tool = ask_user_tool(channel)
        for call in calls:
            await tool.execute("call", AskUserParams.model_validate(call))
        return [request.question_id for request in channel.history]


async def serve(checkpointer):
    loop = asyncio.get_running_loop()
    peer = Peer(checkpointer)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        name, *arguments = json.loads(line)
        try:
            reply = {"value": await getattr(peer, name)(*arguments)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


async def main():
    async with SQLiteCheckpointer(sys.argv[1]) as checkpointer:
        await serve(checkpointer)


if __name__ == "__main__":
    asyncio.run(main())

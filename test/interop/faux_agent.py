"""A CubeLoop agent with a scripted model, for agent_suspend.py and agent_respond.py.

Its tools: `note(text, colour="teal")` and `remove(path)`, which need approval, `look(what)`, which does not, and ask_user.
"""

import asyncio
import json

from cubeloop import Agent, tool
from cubeloop.hitl import ApprovalPolicyMiddleware, CheckpointedChannel, ConfirmToolCallMiddleware, ask_user_tool
from cubeloop.hitl.policy import Approve, AskUser
from cubeloop.providers.faux import FauxProvider, faux_assistant_message, faux_tool_call

NEEDS_APPROVAL = ["note", "remove"]


class FauxAgent:
    """`script` is the model's turns: a text, or a list of calls {"id", "name", "arguments"}."""

    def __init__(self, checkpointer, thread, run, script, gate="policy"):
        self.executed = []
        self.channel = CheckpointedChannel(checkpointer=checkpointer, thread_id=thread, run_id=run)
        provider = FauxProvider(provider_id="faux")
        provider.set_responses([turn(item) for item in script])
        self.agent = Agent(
            model=provider.model("faux-1"),
            tools=[*self.tools(), ask_user_tool(self.channel)],
            middleware=[self.gate(gate)],
            channel=self.channel,
            checkpointer=checkpointer,
            thread_id=thread,
        )

    def gate(self, kind):
        if kind == "confirm":
            return ConfirmToolCallMiddleware(self.channel, require_confirm=NEEDS_APPROVAL, details_fn=lambda ctx: {"tool": ctx.tool_call.name})
        return ApprovalPolicyMiddleware(self.channel, lambda ctx: AskUser() if ctx.tool_call.name in NEEDS_APPROVAL else Approve())

    def tools(self):
        executed = self.executed

        @tool
        async def note(text: str, colour: str = "teal") -> str:
            "Write a note."
            executed.append(["note", text, colour])
            return f"Noted: {text}"

        @tool
        async def remove(path: str) -> str:
            "Remove a file."
            executed.append(["remove", path])
            return f"Removed: {path}"

        @tool
        async def look(what: str) -> str:
            "Look at something."
            executed.append(["look", what])
            return f"Seen: {what}"

        return [note, remove, look]

    async def until_settled(self, work):
        """Runs `work` to its end, detaching as soon as a request is pending, as a host that goes away does."""
        asked = self.channel.subscribe()
        task = asyncio.ensure_future(work)
        request = asyncio.ensure_future(anext(asked))
        await asyncio.wait([task, request], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await self.agent.detach()
        request.cancel()
        await task

    def report(self):
        return json.dumps({"outcome": self.agent.state.last_outcome, "executed": self.executed})


def turn(item):
    if isinstance(item, str):
        return faux_assistant_message(item)
    calls = [faux_tool_call(call["name"], call["arguments"], id=call["id"]) for call in item]
    return faux_assistant_message(calls, stop_reason="tool_use")

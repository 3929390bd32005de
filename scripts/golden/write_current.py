"""Writes the files of the present CubeLoop.

  python write_current.py DIRECTORY            every file but the mixed one
  python write_current.py --continue FILE      runs in the thread "mixed" of an old release's file, which this upgrades
  python write_current.py --expect FILE        only FILE's .json, from what CubeLoop loads
"""

import asyncio
import gzip
import importlib.metadata
import sqlite3
import sys
from pathlib import Path

from fixed import freeze, settle

freeze()

from cubeloop import Agent, tool  # noqa: E402
from cubeloop.checkpointer import SQLiteCheckpointer  # noqa: E402
from cubeloop.hitl import (  # noqa: E402
    ApprovalPolicyMiddleware,
    CheckpointedChannel,
    HitlRequest,
    ask_user_tool,
)
from cubeloop.hitl.policy import Approve, AskUser  # noqa: E402
from cubeloop.hitl.types import ConfirmRequest  # noqa: E402
from cubeloop.providers.base import (  # noqa: E402
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from cubeloop.providers.faux import FauxProvider, faux_assistant_message, faux_text, faux_thinking, faux_tool_call  # noqa: E402

from expect import expectation, write  # noqa: E402
from values import DETAILS, TEXTS  # noqa: E402

MADE_BY = f"cubeloop {importlib.metadata.version('cubeloop')}"


@tool
async def note(text: str) -> str:
    "Write a note."
    return f"Noted: {text}"


def agent(cp, thread, responses, *, ask=False, **options):
    """An agent with a scripted model; with `ask` every call of `note` waits for approval."""
    provider = FauxProvider(provider_id="faux")
    provider.set_responses(responses)
    tools, middleware, channel = [note], [], None
    if ask:
        channel = CheckpointedChannel(checkpointer=cp, thread_id=thread, run_id=options.pop("run_id"))
        middleware = [ApprovalPolicyMiddleware(channel, lambda ctx: AskUser() if ctx.tool_call.name == "note" else Approve())]
        tools = [note, ask_user_tool(channel)]
    return Agent(
        model=provider.model("faux-1"), tools=tools, middleware=middleware, channel=channel,
        checkpointer=cp, thread_id=thread, system_prompt="You are a test.", **options,
    )


async def until_suspended(agent, work):
    """Runs `work` and detaches as soon as a request is pending, as a host that goes away does."""
    task = asyncio.ensure_future(work)
    while not task.done():
        if agent.in_flight_hitl_request is not None and agent.channel._future is not None:
            await asyncio.sleep(0.01)
            await agent.detach()
        await asyncio.sleep(0)
    await task


async def runs(cp):
    """Runs of a real agent, with tools; a run that failed; one that was never completed; forks."""
    chat = agent(cp, "chat", [
        faux_assistant_message([faux_thinking("A note is needed."), faux_text("I will note it."), faux_tool_call("note", {"text": "teal"}, id="call_0"), faux_tool_call("note", {"text": "\U0001f9f5 tee"}, id="call_1")], stop_reason="tool_use"),
        faux_assistant_message("Noted twice."),
    ])
    await chat.prompt("Remember: my favourite colour is teal.", run_id="run-1")
    second = agent(cp, "chat", [faux_assistant_message("You said teal.")])
    second._extra["mood"] = {"colour": "teal", "n": [1, 2.5, None]}
    await second.prompt("What did I say my favourite colour was?", run_id="run-2")
    await cp.fork("chat", "fork of run 1", after_run_id="run-1", metadata={"reason": "try", "by": None})
    await cp.fork("chat", "fork of run 2", after_run_id="run-2")
    await cp.claim_run("chat", "run-unfinished")
    await cp.append("chat", [UserMessage(content=[TextContent(text="never answered")], run_id="run-unfinished")])
    await agent(cp, "fork of run 1", [faux_assistant_message("Another second turn.")]).prompt("Go elsewhere.", run_id="run-2")
    await cp.fork("fork of run 1", "fork of a fork", after_run_id="run-2", metadata={"deep": {"er": [1]}})
    await cp.claim_run("claimed only", "run-0")


async def kinds(cp):
    """Every field and block by itself, in threads without an agent."""
    await cp.append("assistants", [
        AssistantMessage(content=[], stop_reason="error", error_message="429 slow down", error_type="rate_limit", error_code="rate_limit_error", status_code=429, retry_after=1.5, tokens_in=10, context_window=200000),
        AssistantMessage(content=[TextContent(text="cut")], stop_reason="aborted", error_message=""),
        AssistantMessage(content=[ThinkingContent(thinking=""), ImageContent(source="https://example.com/a.png", media_type="image/png")], usage=Usage(), response_id="resp_1", provider_id="anthropic", model_id="claude", id="a" * 32, timestamp=0.0, metadata={"k": [None]}),
        AssistantMessage(content=[ToolCall(id="call_0", name="t", arguments={"value": value}) for value in DETAILS], stop_reason="tool_use", usage=Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4)),
    ])
    await cp.append("details", [
        ToolResultMessage(tool_call_id=f"call_{i}", tool_name="t", content=[TextContent(text=str(i))], details=value, is_error=i % 2 == 1)
        for i, value in enumerate(DETAILS)
    ])
    await cp.append("texts", [UserMessage(content=[TextContent(text=text)], metadata={text: [text]}) for text in TEXTS])
    await cp.save_extra("texts", {text: {"text": text} for text in TEXTS})
    for thread in ["线程-\U0001f9f5", "Case", "case", "cafe\u0301", "caf\u00e9", "x') OR 1=1 --", "../up", " padded ", "a" * 255]:
        await cp.append(thread, [UserMessage(content=[TextContent(text=thread)])])
    await cp.save_extra("only extra", {"false": False, "zero": 0, "empty": "", "null": None, "list": [], "object": {}})


async def waiting(cp):
    """Requests of each kind, suspended by a real agent where one can ask, and answers in the ledger."""
    two = faux_assistant_message([faux_tool_call("note", {"text": "one"}, id="call_a"), faux_tool_call("note", {"text": "two"}, id="call_b")], stop_reason="tool_use")
    first = agent(cp, "approve", [two], ask=True, run_id="run-approve")
    await until_suspended(first, first.prompt("Note two things.", run_id="run-approve"))

    first = agent(cp, "approve second", [two], ask=True, run_id="run-second")
    await until_suspended(first, first.prompt("Note two things.", run_id="run-second"))
    later = agent(cp, "approve second", [], ask=True, run_id="run-second")
    await until_suspended(later, later.respond(question_id="call_a", answer={"decision": "edit", "edited_args": {"text": "edited"}}))

    questions = [
        {"key": "colour", "prompt": "Which colour? \U0001f3a8", "options": [{"label": "Teal", "value": "teal"}, {"label": "Other", "value": "other", "description": "say which", "allow_input": True}], "multi_select": True},
        {"key": "name", "prompt": "Your name?", "required": False},
    ]
    asking = agent(cp, "ask", [faux_assistant_message([faux_tool_call("ask_user", {"questions": questions}, id="call_q")], stop_reason="tool_use")], ask=True, run_id="run-ask")
    await until_suspended(asking, asking.prompt("Ask me.", run_id="run-ask"))

    await cp.append("confirm", [UserMessage(content=[TextContent(text="Go.")])])
    confirm = HitlRequest(question_id="confirm.0", thread_id="confirm", payload=ConfirmRequest(prompt="Really?", details={"cost": 1.5}), created_at=1750000000.125, timeout_seconds=30.0)
    await cp.save_pending_request("confirm", confirm, run_id="run-confirm")
    await cp.save_pending_request("without a run", confirm.model_copy(update={"thread_id": None, "timeout_seconds": None}))
    for i, answer in enumerate([False, None, "", 0, True, [], {}, {"colour": ["teal"], "name": "nul \x00"}, "x" * 1000]):
        await cp.save_hitl_answer("confirm", f"q{i}", answer, run_id="run-confirm")
    await cp.save_hitl_answer("without a run", "q0", "an answer of no run")


async def large(cp):
    words = "the quick brown fox jumps over a lazy dog and on".split()
    text = " ".join(f"{words[i % 11]}{i * i % 97}" for i in range(160_000))
    await cp.claim_run("large", "run-1")
    await cp.append("large", [
        UserMessage(content=[TextContent(text="small")], run_id="run-1"),
        ToolResultMessage(tool_call_id="call_0", tool_name="read", content=[TextContent(text=text)], details={"text": text[:1000]}, run_id="run-1"),
    ])
    await cp.mark_run_complete("large", "run-1")


async def not_json(cp):
    """NaN, which Python's json writes and no other reads: a row that is damaged for everyone else."""
    await cp.append("nan", [
        UserMessage(content=[TextContent(text="before")]),
        ToolResultMessage(tool_call_id="call_0", tool_name="t", content=[], details={"ratio": float("nan")}),
    ])
    await cp.append("sound", [UserMessage(content=[TextContent(text="other threads are unaffected")])])


async def make(path, fill):
    async with SQLiteCheckpointer(str(path)) as cp:
        await fill(cp)
    settle(path)


async def expect(path):
    async with SQLiteCheckpointer(str(path)) as cp:
        write(await expectation(cp, str(path), MADE_BY), path.with_suffix(".json"))


async def write_all(directory):
    for name, fill in {"runs": runs, "kinds": kinds, "waiting": waiting}.items():
        path = directory / f"{name}.sqlite3"
        await make(path, fill)
        await expect(path)
    await make(directory / "not-json.sqlite3", not_json)
    path = directory / "large.sqlite3"
    await make(path, large)
    for file in [path, path.with_suffix(".json")]:
        if file.suffix == ".json":
            await expect(path)
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    path.unlink()
    path.with_suffix(".json").unlink()


async def go_on(path):
    async with SQLiteCheckpointer(str(path)) as cp:
        await agent(cp, "mixed", [faux_assistant_message("After runs began.")]).prompt("with a run", run_id="run-1")
        await cp.claim_run("mixed", "run-open")
        await cp.append("mixed", [UserMessage(content=[TextContent(text="of a run that is open")], run_id="run-open")])
    settle(path)


if sys.argv[1] == "--continue":
    asyncio.run(go_on(Path(sys.argv[2])))
elif sys.argv[1] == "--expect":
    settle(sys.argv[2])
    asyncio.run(expect(Path(sys.argv[2])))
else:
    asyncio.run(write_all(Path(sys.argv[1])))

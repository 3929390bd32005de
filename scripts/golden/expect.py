"""What the package that wrote a file loads from it, as JSON beside the file."""

import json
import sqlite3


async def expectation(checkpointer, path, made_by):
    """`checkpointer` is open on `path`; gives each thread as the package loads it, with its runs, request and answers."""
    threads = {}
    for thread in thread_ids(path):
        data = await checkpointer.load(thread)
        threads[thread] = {
            "messages": [message.model_dump(mode="json") for message in data.messages] if data else [],
            "extra": data.extra if data else {},
            "parent_thread_id": getattr(data, "parent_thread_id", None),
            "pending": await pending(checkpointer, thread),
            "answers": await answers(checkpointer, path, thread),
            "runs": runs(path, thread),
            "snapshots": await snapshots(checkpointer, path, thread),
        }
    return {"made_by": made_by, "threads": threads}


def write(expected, path):
    with open(path, "w", encoding="ascii") as file:
        json.dump(expected, file, indent=1, allow_nan=False)
        file.write("\n")


def rows(path, sql, *values):
    """The rows of a query, or none when this version of the schema lacks the table."""
    db = sqlite3.connect(path)
    try:
        return db.execute(sql, values).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return []
    finally:
        db.close()


def thread_ids(path):
    tables = ["messages", "thread_extra", "thread_pending_request", "runs"]
    return sorted({row[0] for table in tables for row in rows(path, f"SELECT thread_id FROM {table}")})


async def pending(checkpointer, thread):
    if hasattr(checkpointer, "load_pending"):
        loaded = await checkpointer.load_pending(thread)
        return {"request": loaded[0].model_dump(mode="json"), "run_id": loaded[1]} if loaded else None
    if hasattr(checkpointer, "load_pending_request"):
        request = await checkpointer.load_pending_request(thread)
        run_id = await checkpointer.load_pending_run_id(thread) if hasattr(checkpointer, "load_pending_run_id") else None
        return {"request": request.model_dump(mode="json"), "run_id": run_id} if request else None
    return None


async def answers(checkpointer, path, thread):
    found = []
    for run_id, question_id in rows(
        path, "SELECT run_id, question_id FROM thread_hitl_answers WHERE thread_id = ? ORDER BY 1, 2", thread
    ):
        answer = await checkpointer.load_hitl_answer(thread, question_id, run_id=run_id or None)
        found.append({"run_id": run_id or None, "question_id": question_id, "answer": answer})
    return found


def runs(path, thread):
    sql = "SELECT run_id, completion_seq FROM runs WHERE thread_id = ? ORDER BY run_id"
    return [{"run_id": run_id, "completion_seq": seq} for run_id, seq in rows(path, sql, thread)]


async def snapshots(checkpointer, path, thread):
    return {
        run["run_id"]: [message.model_dump(mode="json") for message in await checkpointer.snapshot(thread, after_run_id=run["run_id"])]
        for run in runs(path, thread)
        if run["completion_seq"] is not None
    }

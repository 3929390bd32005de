/** What an agent refuses. Failures of the store and of the model have errors of their own. */
import { EverthreadError } from "../errors.ts";

/** The agent works on a prompt already. Nothing was queued or written. */
export class AgentBusyError extends EverthreadError {
  constructor() {
    super(
      "agent_busy",
      "This agent is working on a prompt. Wait for it, abort it, or use steer() to add a message to it.",
    );
  }
}

/** A message was to be added to a run, and none is under way. */
export class AgentIdleError extends EverthreadError {
  constructor() {
    super("agent_idle", "steer() adds a message to a run under way, and this agent is idle. Use prompt().");
  }
}

/** The thread waits on a person, so it can't take a prompt. Nothing was written. */
export class HitlPendingError extends EverthreadError {
  readonly questionId: string;

  constructor(threadId: string, questionId: string) {
    super(
      "hitl_pending",
      `Thread ${JSON.stringify(threadId)} waits on the answer to question ${JSON.stringify(questionId)}. Call respond() with it, or abortPending().`,
    );
    this.questionId = questionId;
  }
}

/** An answer was given and the thread waits on none. */
export class HitlNoPendingRequestError extends EverthreadError {
  constructor(threadId: string) {
    super("hitl_no_pending_request", `Thread ${JSON.stringify(threadId)} waits on no answer.`);
  }
}

/** The answer is to a question that no longer waits: another answer came first, or the question has changed. */
export class HitlStaleAnswerError extends EverthreadError {
  constructor(questionId: string, pending: string | undefined) {
    super(
      "hitl_stale_answer",
      `Question ${JSON.stringify(questionId)} no longer waits on an answer${pending === undefined ? "" : `; the thread waits on ${JSON.stringify(pending)}`}. This answer was not recorded.`,
    );
  }
}

/** What was asked is not what the thread holds now: an approval is good for exactly the arguments that were shown. */
export class HitlMismatchError extends EverthreadError {
  constructor(problem: string) {
    super(
      "hitl_mismatch",
      `${problem} The answer was not recorded, and nothing was run. Use abortPending() to close it.`,
    );
  }
}

/** The answer is not of the form that the question takes. Nothing was recorded; answer again. */
export class HitlInvalidAnswerError extends EverthreadError {
  constructor(problem: string) {
    super("hitl_invalid_answer", `${problem} The answer was not recorded.`);
  }
}

/** A person would have to be asked where nobody can be: without a store, or in forkOnce. */
export class HitlUnavailableError extends EverthreadError {
  constructor(problem: string) {
    super("hitl_unavailable", problem);
  }
}

import type { IncomingMessage, OutgoingMessage, ServerResponse } from "node:http";
import { Transform } from "node:stream";
import { ClientGone, failureOf, SiteTimeout } from "./failures.js";
import { valuesOf } from "./headerLines.js";
import { answerProblem } from "./proxyProblem.js";
import { type RequestHead, tooLarge } from "./requestHead.js";
import { responseHead } from "./responseHead.js";
import type { Sender, Sent } from "./sender.js";
import type { ProxyTarget } from "./target.js";
import type { Turn, Turns } from "./turns.js";

/** What every relay works with. */
export interface RelayContext {
  readonly turns: Turns;
  readonly sender: Sender;
  /** The longest silence of a site or a client on the way. */
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
  readonly pseudonym: string;
}

/** One request of a client. */
export interface RelayTask {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: ProxyTarget;
  readonly head: RequestHead;
  /** The client waits for a "100 Continue" before it sends its body. */
  readonly isContinueWanted: boolean;
}

/** Methods that may be sent a second time when the connection was closed under the first: RFC 9110, section 9.2.2. */
const REPEATABLE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/**
 * Waits for its turn, sends the request, tells the limiter what is answered, and streams the body with back-pressure.
 *
 * Resolves when everything is over, whatever the end. Throws what `Turns.take` throws; nothing is taken then. A connection that was kept and turns out to
 * be closed costs a second turn, once.
 */
export async function relay(context: RelayContext, task: RelayTask): Promise<void> {
  const { request, response, target, head } = task;
  const away = new AbortController();
  const onClose = (): void => away.abort(new ClientGone("The client went away."));
  response.once("close", onClose);
  if (response.destroyed) onClose();
  const mayReuse = REPEATABLE.has(request.method ?? "") && !head.hasBody;
  try {
    const first = await context.turns.take(`${target.origin}${target.path}`, away.signal);
    if (!(await new Passage(context, task, first, mayReuse).end)) return;
    const second = await context.turns.take(`${target.origin}${target.path}`, away.signal);
    await new Passage(context, task, second, false).end;
  } finally {
    response.off("close", onClose);
  }
}

/** Sends headers that Node would keep until there is a byte of the body. Its own `flushHeaders` writes bytes that are not ASCII as other ones. */
function sendHeaders(message: OutgoingMessage): void {
  message.write("", "latin1");
}

/** One sending of a request, from its turn to the last byte of the answer. */
class Passage {
  /** Resolves when it is over: true when the connection was stale, and it may be sent once more. Never rejects. */
  readonly end: Promise<boolean>;
  #resolve: (isStale: boolean) => void = () => undefined;
  #sent: Sent | undefined = undefined;
  #answered: IncomingMessage | undefined = undefined;
  #isOver = false;

  constructor(
    readonly context: RelayContext,
    readonly task: RelayTask,
    readonly turn: Turn,
    readonly mayReuse: boolean,
  ) {
    this.end = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    try {
      this.#begin();
    } catch (error) {
      this.#fail(error);
    }
  }

  #begin(): void {
    const { request, response, target, head, isContinueWanted } = this.task;
    const sent = this.context.sender.send({
      target,
      method: request.method ?? "GET",
      lines: head.lines,
      mayReuse: this.mayReuse,
    });
    this.#sent = sent;
    const { request: upstream } = sent;
    upstream.setTimeout(this.context.timeoutMs, () => this.#fail(this.#silence()));
    upstream.once("response", (answer) => this.#answer(answer));
    // Once there is an answer, its own end tells: a site may answer and close while the body is still on its way to it.
    upstream.on("error", (error) => this.#failUnanswered(error));
    upstream.once("close", () => this.#failUnanswered(new Error("the site closed the connection without an answer")));
    response.once("close", this.#onClientClose);
    if (!head.hasBody) {
      upstream.end();
      return;
    }
    if (isContinueWanted) response.writeContinue();
    const counter = this.#counter();
    // Pipes that pass errors on would make a client's failure look like the site's.
    request.once("error", () => this.#fail(new ClientGone("The client broke off in the middle of its body.")));
    counter.once("error", (error) => this.#fail(error));
    sendHeaders(upstream);
    request.pipe(counter).pipe(upstream);
  }

  readonly #onClientClose = (): void => {
    if (!this.task.response.writableFinished) this.#fail(new ClientGone("The client went away."));
  };

  /** Whose silence it was: the site's, unless the client owes a piece of its body or does not read. */
  #silence(): Error {
    const { request, response, head } = this.task;
    const { timeoutMs } = this.context;
    const isClients =
      (head.hasBody && !request.readableEnded && !this.#sent?.request.writableNeedDrain) || response.writableNeedDrain;
    return isClients
      ? new ClientGone(`The client was silent for ${timeoutMs} ms.`)
      : new SiteTimeout(`The site was silent for ${timeoutMs} ms.`);
  }

  #counter(): Transform {
    const { maxBodyBytes } = this.context;
    let bytes = 0;
    return new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length;
        if (bytes > maxBodyBytes) done(tooLarge(maxBodyBytes));
        else done(null, chunk);
      },
    });
  }

  #answer(answer: IncomingMessage): void {
    if (this.#isOver) return;
    this.#answered = answer;
    const { request, response, target, head } = this.task;
    const { rawHeaders } = request;
    this.turn.answered(answer.statusCode ?? 0, answer.headers);
    try {
      const lines = responseHead(answer, {
        target,
        hasCredentials: ["authorization", "cookie"].some((name) => valuesOf(rawHeaders, name).length > 0),
        waitedMs: this.turn.waitedMs,
        pseudonym: this.context.pseudonym,
      });
      response.sendDate = false;
      // What is left of the body will not be read.
      if (head.hasBody && !request.complete) response.shouldKeepAlive = false;
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", [...lines]);
    } catch (error) {
      this.#fail(error);
      return;
    }
    answer.once("end", () => this.turn.end());
    answer.once("error", (error) => this.#fail(error));
    response.once("finish", () => this.#finish(false));
    sendHeaders(response);
    answer.pipe(response);
  }

  #failUnanswered(error: Error): void {
    if (this.#answered === undefined) this.#fail(error);
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    const { response } = this.task;
    const upstream = this.#sent?.request;
    const { code } = error as NodeJS.ErrnoException;
    const isStale =
      this.mayReuse &&
      upstream?.reusedSocket === true &&
      !response.headersSent &&
      (code === "ECONNRESET" || code === "EPIPE");
    const { problem, outcome } = failureOf(error, this.#sent?.wasSent() ?? false);
    this.turn.end(isStale ? undefined : outcome);
    if (!isStale) {
      if (!response.headersSent) response.setHeader("Politely-Waited-Ms", Math.round(this.turn.waitedMs));
      answerProblem(response, problem);
    }
    this.#finish(isStale);
  }

  #finish(isStale: boolean): void {
    this.#isOver = true;
    this.turn.end();
    this.task.response.off("close", this.#onClientClose);
    const upstream = this.#sent?.request;
    // A request that is over leaves its connection to the next one; any other end closes it.
    if (this.#answered?.complete !== true || upstream?.writableFinished !== true) upstream?.destroy();
    this.#resolve(isStale);
  }
}

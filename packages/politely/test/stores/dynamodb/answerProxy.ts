import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";

/** An answer that the proxy gives in place of the server. */
export interface OwnAnswer {
  /** The name of an error of DynamoDB: `"ThrottlingException"`. */
  readonly error: string;
  readonly message?: string;
  /** What the error carries besides its message. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** An HTTP proxy before DynamoDB that can answer by itself, and change what time answers say. */
export interface AnswerProxy extends AsyncDisposable {
  readonly endpoint: string;
  /** The operations asked for so far, oldest first: `"PutItem"`. */
  readonly operations: string[];
  /** Is asked for every operation; undefined lets it through. Default: all pass. */
  answer: (operation: string) => OwnAnswer | undefined;
  /** Changes the `Date` of an answer; undefined removes it. Default: it stays. */
  date: (date: string) => string | undefined;
}

/** Starts a proxy on a free port of loopback. It ends when it is disposed of. */
export async function answerProxy(target: string): Promise<AnswerProxy> {
  const operations: string[] = [];
  const proxy: Pick<AnswerProxy, "answer" | "date"> = { answer: () => undefined, date: (date) => date };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.sendDate = false;
    const operation = String(request.headers["x-amz-target"]).replace(/^.*\./, "");
    operations.push(operation);
    const own = proxy.answer(operation);
    const { status, headers, body } = own === undefined ? await passOn(request, target) : errorAnswer(own);
    const date = proxy.date(headers.date ?? new Date().toUTCString());
    const { date: _, ...others } = headers;
    response.writeHead(status, date === undefined ? others : { ...others, date }).end(body);
  };
  const listener = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    serve(request, response).catch(() => response.destroy());
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return Object.assign(proxy, {
    endpoint: `http://127.0.0.1:${port}`,
    operations,
    async [Symbol.asyncDispose]() {
      listener.close();
      listener.closeAllConnections();
      await once(listener, "close");
    },
  });
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array | string;
}

async function passOn(request: IncomingMessage, target: string): Promise<Answer> {
  const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
  const answer = await fetch(target, {
    method: "POST",
    headers: headers as Record<string, string>,
    body: new Uint8Array(await buffer(request)),
  });
  const body = new Uint8Array(await answer.arrayBuffer());
  const { "content-encoding": ____, "transfer-encoding": _____, ...kept } = Object.fromEntries(answer.headers);
  return { status: answer.status, headers: { ...kept, "content-length": String(body.length) }, body };
}

function errorAnswer({ error, message = "said by the test", more = {} }: OwnAnswer): Answer {
  const body = JSON.stringify({
    __type: `com.amazonaws.dynamodb.v20120810#${error}`,
    message,
    Message: message,
    ...more,
  });
  return { status: 400, headers: { "content-type": "application/x-amz-json-1.0" }, body };
}

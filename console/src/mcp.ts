// An MCP client of revision 2026-07-28 in the browser: one POST for each request, through the gateway's own /mcp and every gate.
import { type Json, messageOf, parsed, send, who } from "./session";
import type { Schema } from "./store";

export const VERSION = "2026-07-28";
export const CLIENT = { name: "pactgate-console", version: "1" };
const MAX_ROUNDS = 10;
const PREFIX = "io.modelcontextprotocol/";
const ENVELOPE = "dev.pactgate/envelope";

export interface Question {
  method: string;
  params: { [name: string]: Json };
}

export type Answer = { action: "accept" | "decline" | "cancel"; content?: Json };

export interface Watch {
  signal: AbortSignal;
  onProgress(done: number, total: number | undefined, message: string | undefined): void;
  ask(question: Question): Promise<Answer>;
}

export type Block = { type: string; text?: string; [name: string]: Json | undefined };

export interface Result {
  content?: Block[];
  structuredContent?: Json;
  isError?: boolean;
  resultType?: string;
  inputRequests?: { [id: string]: Question };
  requestState?: string;
  _meta?: { [name: string]: Json };
}

export interface Envelope {
  requestId?: string;
  durationMs?: number;
  cached?: boolean;
  truncated?: boolean;
}

/** For what asks nothing and shows no progress. */
export function quietly(signal: AbortSignal): Watch {
  return { signal, onProgress: () => undefined, ask: async () => ({ action: "cancel" }) };
}

/** What the gateway or the server said instead of a result. */
export class CallError extends Error {
  readonly data: { [name: string]: Json };

  constructor(message: string, data: { [name: string]: Json } = {}) {
    super(message);
    this.data = data;
  }
}

let lastId = 0;

/** Call one tool, answering the questions of its server, until it has a result. Throws CallError, or AbortError when it was cancelled. */
export async function callTool(name: string, args: Json, schema: Schema | null, watch: Watch): Promise<Result> {
  const extra: { [name: string]: Json } = {};
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const result = await request("tools/call", { name, arguments: args, ...extra }, mirrored(schema, args), watch);
    if (result.resultType !== "input_required") return result;
    const answers: { [id: string]: Json } = {};
    for (const [id, question] of Object.entries(result.inputRequests ?? {})) answers[id] = (await watch.ask(question)) as Json;
    extra.inputResponses = answers;
    if (result.requestState !== undefined) extra.requestState = result.requestState;
  }
  throw new CallError("The server goes on asking; the call was given up.");
}

export function envelopeOf(result: Result): Envelope {
  return (result._meta?.[ENVELOPE] ?? {}) as Envelope;
}

/** The headers and the body of a call, as any client of this revision sends them. */
export function message(method: string, params: { [name: string]: Json }, id: number): { headers: Record<string, string>; body: Json } {
  const meta = {
    [`${PREFIX}protocolVersion`]: VERSION,
    [`${PREFIX}clientCapabilities`]: { elicitation: { form: {}, url: {} } },
    [`${PREFIX}clientInfo`]: CLIENT,
    progressToken: id,
  };
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": VERSION,
    "Mcp-Method": method,
  };
  if (typeof params.name === "string") headers["Mcp-Name"] = headerValue(params.name);
  return { headers, body: { jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } } };
}

async function request(method: string, params: { [name: string]: Json }, more: Record<string, string>, watch: Watch): Promise<Result> {
  return resultOf(await answerTo(method, params, watch, more));
}

/** The response to one request, whatever it is. Throws CallError where there is none. */
export async function answerTo(
  method: string, params: { [name: string]: Json }, watch: Watch, more: Record<string, string> = {}, path = "/mcp",
): Promise<Said> {
  const { headers, body } = message(method, params, ++lastId);
  const answer = await send(path, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body), signal: watch.signal });
  for await (const said of messagesOf(answer)) {
    if (said.method === "notifications/progress") tellProgress(said, watch);
    else if ("result" in said || "error" in said) return said;
  }
  throw new CallError("The connection ended before the answer came.");
}

/** What a peer says has any shape. */
type Said = any;

/** The messages of an answer, whether it is one or a stream. Throws CallError. */
export async function* messagesOf(answer: Response): AsyncGenerator<Said> {
  if (answer.status === 401) who.value = null;
  const type = answer.headers.get("Content-Type") ?? "";
  if (type.startsWith("application/json")) {
    yield parsed(await answer.text());
    return;
  }
  if (!type.startsWith("text/event-stream") || !answer.body) throw new CallError(await messageOf(answer));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) {
        const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
        if (data.trim()) yield parsed(data);
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined); // whoever has its answer reads no further
  }
}

export function tellProgress(said: Said, watch: Watch): void {
  watch.onProgress(said.params.progress, said.params.total, said.params.message);
}

export function resultOf(said: { result?: Result; error?: { message: string; data?: Json } }): Result {
  if (said.result) return said.result;
  const data = said.error?.data;
  throw new CallError(
    said.error?.message ?? "The answer has neither result nor error.",
    typeof data === "object" && data !== null && !Array.isArray(data) ? data : {},
  );
}

/** Arguments that a schema wants as headers too, at any depth. */
export function mirrored(schema: Schema | null, args: Json): Record<string, string> {
  const headers: Record<string, string> = {};
  if (typeof args !== "object" || args === null || Array.isArray(args)) return headers;
  for (const [name, property] of Object.entries((schema?.properties ?? {}) as { [name: string]: Schema })) {
    const value = args[name];
    const header = property?.["x-mcp-header"];
    if (value === undefined || value === null) continue;
    if (typeof value === "object") Object.assign(headers, mirrored(property, value));
    else if (typeof header === "string") headers[`Mcp-Param-${header}`] = headerValue(String(value));
  }
  return headers;
}

function headerValue(text: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?")) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

// The same call as a client of the older revision makes it: a handshake, a session, and questions that come while the call runs.
import { type Answer, CallError, CLIENT, messagesOf, type Result, resultOf, tellProgress, type Watch } from "./mcp";
import { type Json, send } from "./session";

export const LEGACY_VERSION = "2025-11-25";
const CALL_ID = 2;

/** Call one tool in a session of its own. Throws CallError, or AbortError when it was cancelled. */
export async function callToolLegacy(name: string, args: Json, watch: Watch): Promise<Result> {
  const session: Record<string, string> = {};
  const post = (body: { [name: string]: Json }, signal?: AbortSignal) =>
    send("/mcp", {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...session },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
      ...(signal ? { signal } : {}),
    });
  const hello = { protocolVersion: LEGACY_VERSION, capabilities: { elicitation: { form: {}, url: {} } }, clientInfo: CLIENT };
  const opened = await post({ id: 1, method: "initialize", params: hello }, watch.signal);
  for await (const said of messagesOf(opened)) if ("result" in said || "error" in said) resultOf(said);
  session["MCP-Protocol-Version"] = LEGACY_VERSION;
  session["Mcp-Session-Id"] = opened.headers.get("Mcp-Session-Id") ?? "";
  let cancelled: Promise<unknown> | undefined;
  watch.signal.addEventListener("abort", () => {
    cancelled = post({ method: "notifications/cancelled", params: { requestId: CALL_ID } }).catch(() => undefined);
  });
  try {
    await post({ method: "notifications/initialized" });
    const params = { name, arguments: args, _meta: { progressToken: CALL_ID } };
    for await (const said of messagesOf(await post({ id: CALL_ID, method: "tools/call", params }, watch.signal))) {
      if (said.method === "notifications/progress") tellProgress(said, watch);
      else if (said.method && "id" in said) void answerTo(said.method, said.params ?? {}, watch).then((reply) => post({ id: said.id, ...reply })).catch(() => undefined); // the call says what is wrong
      else if (said.id === CALL_ID || said.error) return resultOf(said);
    }
    throw new CallError("The connection ended before the answer came.");
  } finally {
    await cancelled;
    void send("/mcp", { method: "DELETE", headers: session }).catch(() => undefined);
  }
}

async function answerTo(method: string, params: { [name: string]: Json }, watch: Watch): Promise<{ [name: string]: Json }> {
  if (method === "ping") return { result: {} };
  if (method !== "elicitation/create") return { error: { code: -32601, message: "The console can't do this." } };
  const answer: Answer = await watch.ask({ method, params });
  return { result: answer as unknown as Json };
}

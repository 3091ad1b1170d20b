// What the gateway tells: servers, tools, and the last calls. One stream brings what is new.
import { signal } from "@preact/signals";
import { ApiError, type Json, messageOf, read, send, who } from "./session";

export interface Server {
  serverId: string;
  status: string;
  transport: string;
  protocolVersion: string | null;
  serverInfo: { title?: string; name?: string; version?: string } | null;
  toolCount: number;
  lastError: string | null;
  trouble: string | null;
  lastConnectedAt: string | null;
  isIdle?: boolean;
  mayHide?: string | null;
  leftOut?: string[];
  latencyMs: number | null;
  attempts: number;
  pid: number | null;
  effectsLevel: string | null;
}

export interface Call {
  requestId: string;
  time: string;
  subject: string;
  client: string;
  tool: string | null;
  server: string | null;
  outcome: string;
  code: string | null;
  verdict: string | null;
  durationMs: number;
  cached: boolean;
}

export interface Tool {
  fullName: string;
  exposedName: string;
  toolName: string;
  serverId: string;
  title: string | null;
  description: string | null;
  inputSchema: Schema | null;
  category: string;
  categoryReason: string;
  isReadOnly: boolean;
  isIdempotent: boolean;
  isDestructive: boolean;
  effectsLevel: string | null;
  timeoutMs: number;
  timeoutSource: string;
  rateLimit: { rpm: number; burst: number } | null;
  definitionBytes: number;
  lock: string | null;
  allowedFor?: { [name: string]: string };
}

export type Schema = { [name: string]: Json };

const MAX_ROWS = 10_000;
const NO_SERVERS: Server[] = [];

export const servers = signal<Server[]>(NO_SERVERS);
export const tools = signal<Tool[] | undefined>(undefined);
export const calls = signal<Call[]>([]);
export const lost = signal(0);
export const isLive = signal(false);
export const filterProblem = signal("");

let stream = new AbortController();
let shownFilter = "";

export function startStream(filter: string): void {
  stream.abort();
  stream = new AbortController();
  shownFilter = filter;
  calls.value = [];
  lost.value = 0;
  void follow(filter, stream.signal);
}

/** Nobody is signed in any more: what was read is not for the next one. */
export function endStream(): void {
  stream.abort();
  isLive.value = false;
  servers.value = NO_SERVERS;
  tools.value = undefined;
  calls.value = [];
}

/** The stream for a filter, if it is not the one that is open. */
export function streamFor(filter: string): void {
  if (filter !== shownFilter) startStream(filter);
}

export async function loadTools(): Promise<void> {
  tools.value = (await read<{ tools: Tool[] }>("/api/tools")).tools;
}

async function follow(filter: string, signal: AbortSignal): Promise<void> {
  let pauseMs = 500;
  while (!signal.aborted && who.value) {
    try {
      await readStream(filter, signal, () => (pauseMs = 500));
    } catch (problem) {
      if (signal.aborted) return;
      isLive.value = false;
      if (problem instanceof ApiError && problem.status === 400) {
        filterProblem.value = problem.message;
        return;
      }
      if (problem instanceof ApiError && problem.status === 401) {
        who.value = null;
        return;
      }
    }
    if (signal.aborted) return;
    isLive.value = false;
    await new Promise((done) => setTimeout(done, pauseMs));
    pauseMs = Math.min(pauseMs * 2, 10_000);
  }
}

async function readStream(filter: string, signal: AbortSignal, opened: () => void): Promise<void> {
  const query = filter ? `?filter=${encodeURIComponent(filter)}` : "";
  const answer = await send(`/api/stream${query}`, { signal, headers: { Accept: "text/event-stream" } });
  if (!answer.ok || !answer.body) throw new ApiError(answer.status, await messageOf(answer));
  filterProblem.value = "";
  const known = await read<{ calls: Call[] }>(`/api/calls${query}`);
  if (signal.aborted) return;
  opened();
  isLive.value = true;
  add(known.calls);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop() ?? "";
    parts.forEach(take);
  }
}

function take(event: string): void {
  const name = /^event: (.*)$/m.exec(event)?.[1];
  const data = /^data: (.*)$/m.exec(event)?.[1];
  if (data === undefined) return;
  const facts = JSON.parse(data);
  if (name === "servers") {
    const before = servers.value;
    servers.value = (facts.servers as Server[]).toSorted(byHealth);
    if (before !== NO_SERVERS && tools.value) loadTools().catch(() => undefined); // the next change tries again
  } else if (name === "calls") {
    lost.value += facts.lost as number;
    add((facts.calls as Call[]).reverse());
  }
}

/** `rows` come newest first. */
function add(rows: Call[]): void {
  const known = new Set(calls.value.slice(0, 1000).map((row) => row.requestId));
  const fresh = rows.filter((row) => !known.has(row.requestId));
  if (fresh.length) calls.value = [...fresh, ...calls.value].slice(0, MAX_ROWS);
}

const RANKS: Record<string, number> = { error: 0, disconnected: 1, connecting: 2, connected: 4, disabled: 5 };

export function rank(server: Server): number {
  return server.status === "connected" && server.trouble ? 3 : (RANKS[server.status] ?? 1);
}

function byHealth(one: Server, other: Server): number {
  return rank(one) - rank(other) || one.serverId.localeCompare(other.serverId);
}

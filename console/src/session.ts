// Who is signed in. The cookie is the browser's; the key is ours, kept for this origin, and sent with every request.
import { signal } from "@preact/signals";
import { go } from "./router";

const KEY = "pactgate-console-key";
const SESSION = "/console/session";
const ISSUERS = "/console/issuers";
const PLACE = "pactgate-console-place";

interface Who {
  subject: string;
  isAdmin: boolean;
  needsToken: boolean;
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** undefined: not known yet; null: nobody. */
export const who = signal<Who | null | undefined>(undefined);
export const signInProblem = signal("");

export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("X-Pactgate-Console", localStorage.getItem(KEY) ?? "none");
  return fetch(path, { ...init, headers, credentials: "same-origin", redirect: "error", cache: "no-store" });
}

/** The JSON at a path of the API, or what it answers to a body. Throws ApiError. */
export async function read<T>(path: string, signal: AbortSignal | null = null, body?: Json): Promise<T> {
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await send(path, { signal, ...(body === undefined ? {} : post) });
  if (answer.status === 401) who.value = null;
  if (!answer.ok) throw new ApiError(answer.status, await messageOf(answer));
  return parsed(await answer.text()) as T;
}

interface ExactJson {
  rawJSON?(text: string): Json;
  parse(text: string, revive: (name: string, value: Json, context?: { source?: string }) => Json): Json;
}

/** JSON of others: integers that the browser can't hold stay as they were written, where it knows how. They are sent on unchanged. */
export function parsed(text: string): Json {
  const exact = JSON as unknown as ExactJson;
  return exact.parse(text, (_, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") && exact.rawJSON ? exact.rawJSON(context!.source!) : value,
  );
}

/** Whether it is such an integer. */
export function isExact(value: Json): value is { rawJSON: string } {
  return typeof value === "object" && value !== null && "rawJSON" in value && Object.isFrozen(value);
}

/** What went wrong, for people. */
export function reason(fault: unknown): string {
  return fault instanceof ApiError ? fault.message : "The gateway can't be reached.";
}

export async function messageOf(answer: Response): Promise<string> {
  try {
    const body = (await answer.json()) as { error?: { message?: string } };
    return body.error?.message ?? `HTTP ${answer.status}`;
  } catch {
    return `HTTP ${answer.status}`;
  }
}

/** Sign in with what somebody typed. What an address gave is a `Code` and nothing else: a link must not sign people in as its author. */
export async function signIn(secret: string, scheme: "Bearer" | "Code" = "Bearer"): Promise<void> {
  signInProblem.value = "";
  const answer = await send(SESSION, {
    method: "POST",
    headers: { Authorization: `${scheme} ${secret}`, "Content-Type": "application/json" },
  }).catch(() => null);
  if (answer === null) {
    signInProblem.value = "The gateway can't be reached.";
  } else if (!answer.ok) {
    signInProblem.value = await messageOf(answer);
  } else {
    const found = (await answer.json()) as Who & { key: string };
    localStorage.setItem(KEY, found.key);
    who.value = { subject: found.subject, isAdmin: found.isAdmin, needsToken: found.needsToken };
  }
}

/** Where people can sign in by themselves. Throws ApiError. */
export async function issuers(): Promise<string[]> {
  return (await read<{ issuers: string[] }>(ISSUERS)).issuers;
}

/** Leave for an identity provider, which sends the browser back with a session. */
export async function signInAt(issuer: string): Promise<void> {
  signInProblem.value = "";
  try {
    const { url } = await read<{ url: string }>(`${ISSUERS}/${encodeURIComponent(issuer)}`, null, {});
    sessionStorage.setItem(PLACE, location.pathname + location.search);
    location.assign(url);
  } catch (fault) {
    signInProblem.value = reason(fault);
  }
}

/** Go on with the session of a key, on the screen that was left for it. Another key of this page stays, if this one opens nothing. */
async function takeKey(key: string): Promise<void> {
  const before = localStorage.getItem(KEY);
  go(sessionStorage.getItem(PLACE) ?? location.pathname, true);
  sessionStorage.removeItem(PLACE);
  localStorage.setItem(KEY, key);
  who.value = await read<Who>(SESSION).catch(() => null);
  if (!who.value && before !== null) localStorage.setItem(KEY, before);
}

export async function signOut(): Promise<void> {
  await send(SESSION, { method: "DELETE" }).catch(() => null);
  localStorage.removeItem(KEY);
  who.value = null;
}

/** Sign in with the code or the key in the address, or go on with the session there is. */
export async function begin(): Promise<void> {
  const given = new URLSearchParams(location.hash.slice(1));
  const [code, key] = [given.get("code"), given.get("key")];
  if (key !== null) await takeKey(key);
  if (code === null && who.value) return;
  if (code !== null) {
    history.replaceState(null, "", location.pathname + location.search);
    await signIn(code, "Code");
    if (signInProblem.value) signInProblem.value = "This link was used or is not of this run. The terminal of the gateway has the current one.";
    if (who.value) return;
  }
  try {
    who.value = await read<Who>(SESSION);
  } catch {
    who.value = null;
  }
}

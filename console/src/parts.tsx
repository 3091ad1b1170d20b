// Small parts of several screens. Text of servers and clients is only ever a text node.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError, isExact, type Json, messageOf, send } from "./session";
import type { Call } from "./store";
import { to } from "./router";

const MAX_TEXT = 20_000;
const MAX_ITEMS = 200;

export const toast = signal("");

let toastTimer = 0;

/** Say something for a moment, the longer the text the longer. */
export function say(text: string): void {
  toast.value = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toast.value = ""), 1500 + text.length * 50);
}

export function copy(text: string): void {
  void navigator.clipboard.writeText(text).then(() => say("Copied."), () => say("The browser did not allow copying."));
}

export function CopyButton({ text, label = "Copy" }: { text: string | (() => string); label?: string }) {
  return <button type="button" class="small" onClick={() => copy(typeof text === "string" ? text : text())}>{label}</button>;
}

/** Save an answer as a file, byte for byte. Throws ApiError. */
export async function save(name: string, path: string): Promise<void> {
  const answer = await send(path);
  if (!answer.ok) throw new ApiError(answer.status, await messageOf(answer));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A long text, shown in part until somebody wants all of it. */
export function Text({ text, limit = MAX_TEXT }: { text: string; limit?: number }) {
  const [shown, setShown] = useState(limit);
  if (text.length <= shown) return <>{text}</>;
  return (
    <>
      {text.slice(0, shown)}
      {"… "}
      <button type="button" class="small" onClick={() => setShown(shown * 10)}>
        {(text.length - shown).toLocaleString()} more characters
      </button>
    </>
  );
}

export function JsonTree({ value, name, depth = 0 }: { value: Json; name?: string; depth?: number }) {
  const [isOpen, setOpen] = useState(depth < 2);
  const label = name === undefined ? null : <span class="key">{name}: </span>;
  if (isExact(value)) return <div class="leaf">{label}<span class="json-number">{value.rawJSON}</span></div>;
  if (typeof value !== "object" || value === null) {
    return (
      <div class="leaf">
        {label}
        <span class={`json-${value === null ? "null" : typeof value}`}>
          <Text text={typeof value === "string" ? JSON.stringify(value) : String(value)} limit={2000} />
        </span>
      </div>
    );
  }
  const entries = Object.entries(value);
  const brackets = Array.isArray(value) ? "[]" : "{}";
  if (!entries.length) return <div class="leaf">{label}{brackets}</div>;
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{label}<span class="dim">{brackets[0]} {entries.length} {brackets[1]}</span></summary>
      {isOpen ? (
        <div class="indent">
          {entries.slice(0, MAX_ITEMS).map(([key, held]) => <JsonTree key={key} name={key} value={held as Json} depth={depth + 1} />)}
          {entries.length > MAX_ITEMS ? <div class="dim">… {entries.length - MAX_ITEMS} more</div> : null}
        </div>
      ) : null}
    </details>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  if (children === null || children === undefined || children === "" || children === false) return null;
  return <><dt>{name}</dt><dd>{children}</dd></>;
}

export function Badge({ kind, children }: { kind: string; children: ComponentChildren }) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

export function Outcome({ call }: { call: Pick<Call, "outcome" | "code"> }) {
  const kind = call.outcome === "ok" ? "good" : call.outcome === "cancelled" ? "plain" : "broken";
  return <Badge kind={kind}>{(kind === "broken" ? (call.code ?? call.outcome) : call.outcome).replaceAll("_", " ").toLowerCase()}</Badge>;
}

export function CallLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return <a href={to("calls", id)}>{children ?? <code>{id.slice(0, 8)}</code>}</a>;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hour12: false }); // to make one for each row takes longer than the row
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hour12: false });

export function clockTime(stamp: string, format = CLOCK): string {
  const at = Date.parse(stamp);
  return Number.isNaN(at) ? stamp : format.format(at);
}

export function fullTime(stamp: string): string {
  return clockTime(stamp, FULL);
}

export function millis(ms: number): string {
  return ms >= 10_000 ? `${(ms / 1000).toFixed(1)} s` : ms >= 100 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

// The settings in force, where each comes from, and changing one: checked first, then applied by the same transaction as `pactgate config set`.
import { useEffect, useState } from "preact/hooks";
import { CallError, callTool, quietly } from "./mcp";
import { Badge, Empty, Text } from "./parts";
import { go, place, to } from "./router";
import { type Json, parsed, reason } from "./session";

interface Shown {
  config: { [section: string]: Json };
  unwritten: string[];
  origins: { [path: string]: string };
  settable: string[];
  revision: string;
}

interface Planned {
  oldValue: Json;
  newValue: Json;
  needsRestart: boolean;
}

interface Row {
  path: string;
  value: Json;
  origin: string;
  isSettable: boolean;
}

const TIMEOUT_MS = 30_000;

/** What a tool of the gateway itself says. Throws CallError. */
async function ask<T>(tool: string, args: { [name: string]: Json }): Promise<T> {
  const result = await callTool(`pactgate.${tool}`, args, null, quietly(AbortSignal.timeout(TIMEOUT_MS)));
  if (result.isError) throw new CallError(result.content?.[0]?.text ?? "It did not work.");
  return result.structuredContent as T;
}

export function Settings({ item }: { item: string }) {
  const [shown, setShown] = useState<Shown | null>(null);
  const [problem, setProblem] = useState("");
  const find = place.value.query.get("find") ?? "";
  const load = () => ask<Shown>("config_show", {}).then(setShown, (fault: unknown) => setProblem(said(fault)));
  useEffect(() => void load(), []);
  if (problem) return <Empty>{problem}</Empty>;
  if (!shown) return <Empty>Loading …</Empty>;
  const wanted = find.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = rowsOf(shown).filter((row) => wanted.every((word) => `${row.path} ${row.origin}`.toLowerCase().includes(word)));
  const sections = Object.groupBy(rows, (row) => row.path.split(/[.[]/)[0]!);
  return (
    <section aria-labelledby="settings-title">
      <h1 id="settings-title">Settings</h1>
      <p class="dim">What is in force, without secrets. Revision <code>{shown.revision}</code>.</p>
      <input
        type="search" id="filter" aria-label="Find settings" placeholder="limits, or command line, or file" value={find} spellcheck={false}
        onInput={(event) => go(to("settings", item, { find: event.currentTarget.value }), true)}
      />
      {rows.length ? null : <Empty>No setting matches.</Empty>}
      {Object.entries(sections).map(([name, held]) => (
        <section key={name}>
          <h2>{name}</h2>
          <div class="settings" role="table" aria-label={name}>
            {held!.map((row) => <OneSetting key={row.path} row={row} shown={shown} isOpen={row.path === item} onChanged={load} />)}
          </div>
        </section>
      ))}
    </section>
  );
}

function OneSetting({ row, shown, isOpen, onChanged }: { row: Row; shown: Shown; isOpen: boolean; onChanged(): Promise<void> }) {
  const isDefault = row.origin === "default";
  const find = place.value.query.get("find") ?? "";
  return (
    <div class="setting" role="row">
      <span role="cell" class="path">{row.isSettable ? <a href={to("settings", isOpen ? "" : row.path, { find })} aria-expanded={isOpen}>{row.path}</a> : row.path}</span>
      <code role="cell"><Text text={JSON.stringify(row.value)} limit={200} /></code>
      <span role="cell" class="origin">{isDefault ? <span class="dim">default</span> : <Badge kind={row.origin.startsWith("changed") ? "warned" : "plain"}>{row.origin}</Badge>}</span>
      {isOpen && row.isSettable ? <Change row={row} revision={shown.revision} onChanged={onChanged} /> : null}
    </div>
  );
}

function Change({ row, revision, onChanged }: { row: Row; revision: string; onChanged(): Promise<void> }) {
  const [text, setText] = useState(JSON.stringify(row.value));
  const [keeps, setKeeps] = useState(false);
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const send = async (dryRun: boolean) => {
    setProblem("");
    setBusy(true);
    try {
      const found = await ask<Planned>("config_set", { path: row.path, value: valueOf(text), expectedRevision: revision, persist: keeps, dryRun });
      setPlanned(dryRun ? found : null);
      if (!dryRun) {
        await onChanged();
        go(to("settings"), true);
      }
    } catch (fault) {
      setPlanned(null);
      setProblem(said(fault));
    }
    setBusy(false);
  };
  return (
    <form class="change" onSubmit={(event) => { event.preventDefault(); void send(planned === null); }}>
      <div class="field">
        <label for="new-value">New value <span class="dim">JSON, else a string; null is the default</span></label>
        <input id="new-value" class="mono" autocomplete="off" spellcheck={false} value={text} onInput={(event) => (setText(event.currentTarget.value), setPlanned(null))} />
      </div>
      <label class="check"><input type="checkbox" checked={keeps} onChange={() => (setKeeps(!keeps), setPlanned(null))} /> also write it to the configuration file</label>
      {planned ? (
        <p role="status">
          <code>{JSON.stringify(planned.oldValue)}</code> → <code>{JSON.stringify(planned.newValue)}</code>
          {planned.needsRestart ? ", takes effect at the next start" : ", takes effect at once"}{keeps ? ", and is written to the file." : ", until the file is read again."}
        </p>
      ) : null}
      {problem ? <p class="bad" role="alert"><Text text={problem} limit={2000} /></p> : null}
      <div class="actions">
        <button type="submit" class={planned ? "primary" : ""} disabled={isBusy}>{planned ? "Apply" : "Check"}</button>
        <a class="button" href={to("settings")}>Cancel</a>
      </div>
    </form>
  );
}

function said(fault: unknown): string {
  return fault instanceof CallError ? fault.message : reason(fault);
}

function valueOf(text: string): Json {
  try {
    return parsed(text);
  } catch {
    return text;
  }
}

/** One row for each setting: two steps deep, and three for servers. */
function rowsOf(shown: Shown): Row[] {
  const rows: Row[] = [];
  const add = (path: string[], value: Json) => {
    const name = spelled(path);
    const changed = shown.unwritten.some((one) => one === name || one.startsWith(`${name}.`) || one.startsWith(`${name}[`));
    const origin = changed ? "changed while running" : (shown.origins[name] ?? shown.origins[spelled(path.slice(0, 2))] ?? (path[0] === "mcpServers" ? "file" : "default"));
    rows.push({ path: name, value, origin, isSettable: isSettable(path, shown.settable) });
  };
  for (const [section, held] of Object.entries(shown.config)) {
    if (!isTable(held) || !Object.keys(held).length) add([section], held);
    else
      for (const [name, value] of Object.entries(held)) {
        if (section === "mcpServers" && isTable(value)) for (const [setting, one] of Object.entries(value)) add([section, name, setting], one);
        else add([section, name], value);
      }
  }
  return rows;
}

function isTable(value: Json): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSettable(path: string[], settable: string[]): boolean {
  return settable.includes(path[0]!) || settable.includes([path[0], "*", ...path.slice(2)].join("."));
}

function spelled(path: string[]): string {
  return path.reduce((text, part) => (/^[A-Za-z0-9_$-]+$/.test(part) ? (text ? `${text}.${part}` : part) : `${text}[${JSON.stringify(part)}]`), "");
}

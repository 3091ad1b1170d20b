// The calls as they come: a table with a filter language, and what became of one call.
import { useEffect, useRef, useState } from "preact/hooks";
import { Messages, type Session } from "./messages";
import { Badge, clockTime, CopyButton, Empty, Fact, fullTime, JsonTree, millis, Outcome, save, say, Text } from "./parts";
import { go, place, to } from "./router";
import { ApiError, type Json, read, reason, who } from "./session";
import { type Call, calls, filterProblem, lost } from "./store";

const ROW_PX = 36;
const SPARE_ROWS = 10;
const FIELDS = "tool: server: caller: client: outcome: code: verdict: cached: ms: id:";

export function Calls() {
  const filter = place.value.query.get("filter") ?? "";
  const [typed, setTyped] = useState({ filter, text: filter }); // what is typed holds until another filter is shown
  const text = typed.filter === filter ? typed.text : filter;
  const [frozen, setFrozen] = useState<Call[] | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const rows = frozen ?? calls.value;
  const height = box.current?.clientHeight ?? 600;
  const first = Math.max(0, Math.floor(top / ROW_PX) - SPARE_ROWS);
  const shown = rows.slice(first, first + Math.ceil(height / ROW_PX) + 2 * SPARE_ROWS);
  return (
    <section aria-labelledby="calls-title">
      <h1 id="calls-title">Calls</h1>
      <form class="toolbar" role="search" onSubmit={(event) => { event.preventDefault(); go(to("calls", "", { filter: text.trim() })); }}>
        <input
          type="search" id="filter" aria-label="Filter" aria-describedby="filter-help" placeholder="tool:crm.* outcome:!ok ms:>500"
          value={text} onInput={(event) => setTyped({ filter, text: event.currentTarget.value })} spellcheck={false}
        />
        <button type="submit" class="primary">Filter</button>
        {who.value?.isAdmin ? <button type="button" title="Save the recorded messages of these calls, at most the last 200" onClick={() => void exportCalls(filter)}>Export</button> : null}
        <button type="button" aria-pressed={frozen !== null} onClick={() => setFrozen(frozen ? null : calls.value)}>{frozen ? "Resume" : "Pause"}</button>
      </form>
      <p id="filter-help" class={filterProblem.value ? "bad" : "dim hint"} role={filterProblem.value ? "alert" : undefined}>
        {filterProblem.value || `${FIELDS} with * ? ! > <, or words`}
      </p>
      {lost.value ? <p class="note">{lost.value.toLocaleString()} calls came faster than they could be shown and are not listed.</p> : null}
      <div class="table" role="table" aria-label="Calls" aria-rowcount={rows.length}>
        <div class="row head" role="row">
          <span role="columnheader">time</span><span role="columnheader">tool</span><span role="columnheader" class="wide">client</span>
          <span role="columnheader">outcome</span><span role="columnheader" class="wide">executed</span><span role="columnheader" class="number">time taken</span>
        </div>
        <div class="scroll" ref={box} tabIndex={0} role="rowgroup" onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
          {rows.length ? null : <Empty>{filter ? "No call matches." : "No calls yet."}</Empty>}
          <div class="space" style={{ height: `${rows.length * ROW_PX}px` }}>
            {shown.map((call, at) => (
              <div class="row" role="row" key={call.requestId} style={{ transform: `translateY(${(first + at) * ROW_PX}px)` }}>
                <span role="cell" class="dim">{clockTime(call.time)}</span>
                <span role="cell" class="name"><a href={to("calls", call.requestId)}>{call.tool}</a></span>
                <span role="cell" class="wide dim">{call.subject}{call.client ? ` · ${call.client}` : ""}</span>
                <span role="cell"><Outcome call={call} />{call.cached ? <Badge kind="plain">cached</Badge> : null}</span>
                <span role="cell" class="wide dim">{executed(call.verdict)}</span>
                <span role="cell" class="number">{millis(call.durationMs)}</span>
              </div>
            ))}
          </div>
        </div>
      </div>
    </section>
  );
}

/** Save the messages of the calls as a capture, which `pactgate compliance` and `pactgate replay` read. */
async function exportCalls(filter: string): Promise<void> {
  const query = filter ? `?filter=${encodeURIComponent(filter)}` : "";
  await save("calls.json", `/api/messages${query}`).catch((fault: unknown) => say(reason(fault)));
}

interface Trace extends Call {
  peer: string;
  times?: { [name: string]: number };
  traceId?: string | null;
  rule?: number | null;
  ruleAt?: string | null;
  version: string | null;
  requested: string | null;
  category: string | null;
  revision: string | null;
  truncated: boolean;
  validated: boolean;
  effects: string | null;
  violations: string[];
  message: string | null;
  party: string | null;
  failure: Json;
  gates: { gate: string; state: string; text: string }[];
  next: string;
}

export function OneCall({ id }: { id: string }) {
  const [call, setCall] = useState<Trace | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    setCall(null);
    setProblem("");
    const end = new AbortController();
    read<Trace>(`/api/calls/${encodeURIComponent(id)}`, end.signal).then(setCall, (fault: Error) =>
      end.signal.aborted ? undefined : setProblem(
        fault instanceof ApiError && fault.status === 404
          ? "The gateway does not know this call any more: it keeps the last 1,000. The audit log may have it (pactgate explain)."
          : reason(fault),
      ),
    );
    return () => end.abort();
  }, [id]);
  if (problem) return <Empty>{problem} <a href={to("calls")}>All calls</a></Empty>;
  if (!call) return <Empty>Loading …</Empty>;
  const tool = call.tool ?? call.requested ?? "a call";
  return (
    <section aria-labelledby="call-title">
      <p><a href={to("calls")}>← Calls</a></p>
      <h1 id="call-title">{tool} <Outcome call={call} /></h1>
      {call.outcome === "ok" ? null : <p class="next">{call.next}</p>}
      {call.message ? <p class="reason"><Text text={call.message} limit={2000} /></p> : null}
      <div class="two">
        <dl class="facts">
          <Fact name="request id"><code>{call.requestId}</code> <CopyButton text={call.requestId} /></Fact>
          <Fact name="time">{fullTime(call.time)}</Fact>
          <Fact name="took">{millis(call.durationMs)}</Fact>
          <Fact name="client">{[call.subject, call.client, call.peer, call.version].filter(Boolean).join(", ")}</Fact>
          <Fact name="requested name">{call.requested}</Fact>
          <Fact name="category">{call.category}</Fact>
          <Fact name="server">{call.revision ? `protocol version ${call.revision}` : ""}</Fact>
          <Fact name="cache">{call.cached ? "a cached response; the server was not called" : ""}</Fact>
          <Fact name="output">{[call.validated ? "valid against the output schema" : "", call.truncated ? "truncated to the size limit" : ""].filter(Boolean).join(", ")}</Fact>
          <Fact name="effects">{call.effects}</Fact>
          <Fact name="undeclared">{call.violations.join("; ")}</Fact>
          <Fact name="error">{call.code}</Fact>
          <Fact name="executed">{call.code ? executed(call.verdict) : ""}</Fact>
          <Fact name="responsible">{call.party === "caller" ? "client" : call.party === "upstream" ? "server" : call.party}</Fact>
          <Fact name="permission">{call.rule ? `rule ${call.rule}${call.ruleAt ? ` (${call.ruleAt})` : ""}` : ""}</Fact>
          <Fact name="trace">{call.traceId ? <><code>{call.traceId}</code> <CopyButton text={call.traceId} /></> : ""}</Fact>
        </dl>
        <div>
          {call.times ? <><h2>Where the time went</h2><Waterfall times={call.times} texts={Object.fromEntries(call.gates.map((one) => [one.gate, one.text]))} /></> : null}
          <details open={call.outcome !== "ok"}>
            <summary><h2>Steps</h2></summary>
            <ol class="steps">
              {call.gates.map(({ gate, state, text }) => (
                <li key={gate} class={state.replace(" ", "-")}><span>{text}</span> <span class="dim">{state}</span></li>
              ))}
            </ol>
          </details>
        </div>
      </div>
      {call.failure ? <><h2>Failure</h2><div class="json"><JsonTree value={call.failure} /></div></> : null}
      <p class="actions">
        {call.tool ? <a class="button" href={to("tools", tool, { again: call.requestId })}>Run it again in the playground</a> : null}
        {who.value?.isAdmin ? <button type="button" onClick={() => void exportCalls(`id:${call.requestId}`)}>Export as a capture</button> : null}
      </p>
      {who.value?.isAdmin ? <><h2>Messages</h2><MessagesOf id={call.requestId} since={Date.parse(call.time)} /></> : null}
    </section>
  );
}

const PARTS: Record<string, string> = {
  connection: "waiting for a connection", queue: "in the queue of the server", server: "at the server", client: "waiting for the client", gateway: "here",
};
const ORDER = ["connection", "queue", "server", "client"];

/** The parts of the time one after the other, in the order in which a call passes them; what the gateway itself took stands last. */
function Waterfall({ times, texts }: { times: { [name: string]: number }; texts: Record<string, string> }) {
  const rank = (name: string) => (name === "gateway" ? 9 : ORDER.indexOf(name)); // the gates come before all others
  const parts = Object.entries(times).sort(([one], [other]) => rank(one) - rank(other));
  const whole = Math.max(0.001, parts.reduce((sum, [, ms]) => sum + ms, 0));
  let at = 0;
  return (
    <div class="waterfall" role="table" aria-label="Where the time went">
      {parts.map(([name, ms]) => {
        const begin = at;
        at += ms;
        return (
          <div key={name} role="row">
            <span role="cell">{PARTS[name] ?? texts[name] ?? name}</span>
            <svg role="cell" aria-label={`${((ms / whole) * 100).toFixed(0)} percent`} viewBox="0 0 100 1" preserveAspectRatio="none">
              <rect class={name} x={(begin / whole) * 100} width={Math.max(0.7, (ms / whole) * 100)} height="1" />
            </svg>
            <span role="cell" class="number">{millis(ms)}</span>
          </div>
        );
      })}
    </div>
  );
}

function MessagesOf({ id, since }: { id: string; since: number }) {
  const [sessions, setSessions] = useState<Session[] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    read<Session[]>(`/api/messages?filter=id:${encodeURIComponent(id)}`).then(setSessions, (fault: unknown) => setProblem(reason(fault)));
  }, [id]);
  if (problem) return <p class="dim">{problem}</p>;
  return sessions ? <>{sessions.toSorted((one, other) => (one.leg ?? "").localeCompare(other.leg ?? "")).map((session, at) => <Messages key={at} session={session} since={since} />)}</> : <p class="dim">Looking into the captures …</p>;
}

function executed(verdict: string | null): string {
  return verdict === "ran" ? "yes" : verdict === "did_not_run" ? "no" : verdict === "may_have_run" ? "perhaps" : "";
}

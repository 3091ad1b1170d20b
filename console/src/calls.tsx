// The calls as they come: a table with a filter language, and what became of one call.
import { useEffect, useRef, useState } from "preact/hooks";
import { Badge, clockTime, CopyButton, Empty, Fact, JsonTree, millis, Outcome, Text } from "./parts";
import { go, place, to } from "./router";
import { ApiError, type Json, read } from "./session";
import { type Call, calls, filterProblem, lost } from "./store";

const ROW_PX = 36;
const SPARE_ROWS = 10;
const FIELDS = "tool: server: caller: client: outcome: code: verdict: cached: ms: id:";

export function Calls() {
  const filter = place.value.query.get("filter") ?? "";
  const [text, setText] = useState(filter);
  const [frozen, setFrozen] = useState<Call[] | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  useEffect(() => setText(filter), [filter]);
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
          value={text} onInput={(event) => setText(event.currentTarget.value)} spellcheck={false}
        />
        <button type="submit" class="primary">Filter</button>
        <button type="button" aria-pressed={frozen !== null} onClick={() => setFrozen(frozen ? null : calls.value)}>{frozen ? "Go on" : "Pause"}</button>
      </form>
      <p id="filter-help" class={filterProblem.value ? "bad" : "dim hint"} role={filterProblem.value ? "alert" : undefined}>
        {filterProblem.value || `${FIELDS} with * ? ! > <, or words`}
      </p>
      {lost.value ? <p class="note">{lost.value.toLocaleString()} calls came faster than they could be shown and are not listed.</p> : null}
      <div class="table" role="table" aria-label="Calls" aria-rowcount={rows.length}>
        <div class="row head" role="row">
          <span role="columnheader">time</span><span role="columnheader">tool</span><span role="columnheader" class="wide">caller</span>
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

interface Trace extends Call {
  peer: string;
  version: string | null;
  requested: string | null;
  via: string | null;
  category: string | null;
  revision: string | null;
  truncated: boolean;
  validated: boolean;
  effects: string | null;
  operations: Json[];
  violations: string[];
  message: string | null;
  party: string | null;
  failure: Json;
  gates: { gate: string; state: string }[];
  next: string;
}

export function OneCall({ id }: { id: string }) {
  const [call, setCall] = useState<Trace | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    setCall(null);
    setProblem("");
    read<Trace>(`/api/calls/${encodeURIComponent(id)}`).then(setCall, (fault: Error) =>
      setProblem(
        fault instanceof ApiError && fault.status === 404
          ? "The gateway does not know this call any more: it keeps the last 1,000. The audit log may have it (pactgate explain)."
          : fault instanceof ApiError ? fault.message : "The gateway can't be reached.",
      ),
    );
  }, [id]);
  if (problem) return <Empty>{problem} <a href={to("calls")}>All calls</a></Empty>;
  if (!call) return <Empty>Loading …</Empty>;
  const tool = call.tool ?? call.requested ?? "a call";
  return (
    <section aria-labelledby="call-title">
      <p><a href={to("calls")}>← Calls</a></p>
      <h1 id="call-title">{tool} <Outcome call={call} /></h1>
      <p class="next">{call.next}</p>
      {call.message ? <p class="reason"><Text text={call.message} limit={2000} /></p> : null}
      <div class="two">
        <dl class="facts">
          <Fact name="request id"><code>{call.requestId}</code> <CopyButton text={call.requestId} /></Fact>
          <Fact name="time">{call.time}</Fact>
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
          <Fact name="responsible">{call.party}</Fact>
        </dl>
        <div>
          <h2>Steps</h2>
          <ol class="steps">
            {call.gates.map(({ gate, state }) => (
              <li key={gate} class={state.replace(" ", "-")}><span>{gate.replaceAll("_", " ")}</span> <span class="dim">{state}</span></li>
            ))}
          </ol>
        </div>
      </div>
      {call.failure ? <><h2>Failure</h2><div class="json"><JsonTree value={call.failure} /></div></> : null}
      {call.tool ? <p><a class="button" href={to("tools", tool)}>Run it again in the playground</a></p> : null}
    </section>
  );
}

function executed(verdict: string | null): string {
  return verdict === "ran" ? "yes" : verdict === "did_not_run" ? "no" : verdict === "may_have_run" ? "perhaps" : "";
}

// What is going on: the servers, broken ones first, and how the calls go. For newcomers: what this is, and one tool to run.
import { useEffect, useState } from "preact/hooks";
import { Badge, CallLink, clockTime, CopyButton, Empty, millis, Outcome, Text } from "./parts";
import { Playground } from "./playground";
import { to } from "./router";
import { type Call, calls, loadTools, rank, type Server, servers, tools } from "./store";

const WINDOW_S = 60;
const WELCOMED = "pactgate-console-welcomed";

export function Now() {
  useEffect(() => {
    if (tools.value === undefined) void loadTools().catch(() => undefined);
  }, []);
  return (
    <>
      <Welcome />
      <Rates />
      <section aria-labelledby="servers-title">
        <h2 id="servers-title">Servers</h2>
        {servers.value.length ? (
          <div class="cards">{servers.value.map((server) => <ServerCard key={server.serverId} server={server} />)}</div>
        ) : (
          <Empty>No servers yet. Add one with <code>pactgate add NAME -- COMMAND</code>.</Empty>
        )}
      </section>
      <section aria-labelledby="last-title">
        <h2 id="last-title">Last calls</h2>
        {calls.value.length ? (
          <ul class="lines">
            {calls.value.slice(0, 8).map((call) => (
              <li key={call.requestId}>
                <CallLink id={call.requestId}><span class="dim">{clockTime(call.time)}</span> {call.tool}</CallLink>
                <span class="right"><Outcome call={call} /> <span class="number">{millis(call.durationMs)}</span></span>
              </li>
            ))}
          </ul>
        ) : (
          <Empty>No calls yet.</Empty>
        )}
      </section>
    </>
  );
}

function Welcome() {
  const [isShown, setShown] = useState(localStorage.getItem(WELCOMED) === null);
  if (!isShown) return null;
  const known = tools.value ?? [];
  const tool = known.find((one) => one.isReadOnly && !((one.inputSchema?.required ?? []) as string[]).length) ?? known[0];
  const endpoint = `${location.origin}/mcp`;
  const dismiss = () => {
    localStorage.setItem(WELCOMED, "1");
    setShown(false);
  };
  return (
    <section class="welcome" aria-labelledby="welcome-title">
      <h1 id="welcome-title">One endpoint for all your MCP servers</h1>
      <p>
        Clients connect to this gateway and see the tools of every server below. Every call passes the same checks, and is listed here with
        what became of it.
      </p>
      <p class="copyable"><span>Address for your client</span> <code>{endpoint}</code> <CopyButton text={endpoint} /></p>
      {tool ? (
        <div class="try">
          <p><strong>Try one: {tool.title ?? tool.toolName}</strong> <span class="dim"><Text text={tool.description ?? ""} limit={200} /></span></p>
          <Playground tool={tool} isShort />
        </div>
      ) : null}
      <button type="button" class="small" onClick={dismiss}>Hide this</button>
    </section>
  );
}

function Rates() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const recent = calls.value.filter((call) => now - Date.parse(call.time) < WINDOW_S * 1000);
  const failed = recent.filter((call) => call.outcome !== "ok");
  const times = recent.map((call) => call.durationMs).sort((one, other) => one - other);
  const at = (share: number) => (times.length ? millis(times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0) : "–");
  const up = servers.value.filter((server) => server.status === "connected").length;
  const enabled = servers.value.filter((server) => server.status !== "disabled").length;
  return (
    <section class="rates" aria-label="The last minute">
      <a class="rate" href={to("servers")}><b>{up} of {enabled}</b><span>servers connected</span></a>
      <a class="rate" href={to("calls")}><b>{recent.length ? (recent.length / WINDOW_S).toFixed(2) : "0"}</b><span>calls/s, last minute</span><Spark calls={recent} now={now} /></a>
      <a class="rate" href={to("calls")}><b>{at(0.5)}</b><span>p50</span></a>
      <a class="rate" href={to("calls")}><b>{at(0.99)}</b><span>p99</span></a>
      <a class={`rate ${failed.length ? "has-failed" : ""}`} href={to("calls", "", { filter: "outcome:!ok" })}><b>{failed.length}</b><span>not ok</span></a>
    </section>
  );
}

function Spark({ calls: rows, now }: { calls: Call[]; now: number }) {
  const counts = new Array<number>(30).fill(0);
  for (const row of rows) {
    const slot = 29 - Math.floor((now - Date.parse(row.time)) / 2000);
    if (slot >= 0 && slot < 30) counts[slot]! += 1;
  }
  const most = Math.max(1, ...counts);
  const points = counts.map((count, at) => `${(at * 100) / 29},${22 - (count / most) * 20}`).join(" ");
  return <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true"><polyline points={points} /></svg>;
}

export function ServerCard({ server }: { server: Server }) {
  const reason = server.trouble ?? server.lastError;
  const kind = server.status === "disabled" ? "plain" : rank(server) < 3 ? "broken" : rank(server) === 3 ? "warned" : "good";
  return (
    <article class={`card ${kind}`} data-server={server.serverId} data-status={server.status}>
      <header>
        <h3><a href={to("servers", server.serverId)}>{server.serverId}</a></h3>
        <Badge kind={kind}>{server.status}</Badge>
      </header>
      {kind === "good" || kind === "plain" ? (
        <p class="dim">
          {server.toolCount} {server.toolCount === 1 ? "tool" : "tools"} · {server.transport}
          {server.protocolVersion ? ` · ${server.protocolVersion}` : ""}
          {server.latencyMs === null ? "" : ` · connected in ${millis(server.latencyMs)}`}
        </p>
      ) : (
        <>
          <p class="reason"><Text text={reason ?? "It is not connected."} limit={300} /></p>
          <p class="dim">{nextStep(server)}</p>
        </>
      )}
      <footer><a href={to("calls", "", { filter: `server:${server.serverId}` })}>calls</a> <a href={to("tools", "", { find: server.serverId })}>tools</a></footer>
    </article>
  );
}

export function nextStep(server: Server) {
  if (server.status === "connecting" || server.status === "disconnected") return "The gateway is connecting it again.";
  return <>The gateway goes on trying. <code>pactgate doctor {server.serverId}</code> finds the cause.</>;
}

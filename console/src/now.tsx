// What is going on: the servers, broken ones first, and how the calls go. For newcomers: what this is, and one tool to run.
import { useEffect, useState } from "preact/hooks";
import { Badge, CallLink, clockTime, CopyButton, Empty, millis, Outcome, Text } from "./parts";
import { Playground } from "./playground";
import { to } from "./router";
import { read, who } from "./session";
import { calls, loadTools, rank, type Server, servers, tools } from "./store";
import { rates, watchTraffic } from "./traffic";

const WINDOW_MS = 60_000;
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
  if (!isShown) return <p class="again"><button type="button" class="small" onClick={() => setShown(true)}>How do I connect a client?</button></p>;
  const known = tools.value ?? [];
  const tool = known.find((one) => one.isReadOnly && !((one.inputSchema?.required ?? []) as string[]).length) ?? known[0];
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
      {tool ? (
        <div class="try">
          <p><strong>Try one: {tool.title ?? tool.toolName}</strong> <span class="dim"><Text text={tool.description ?? ""} limit={200} /></span></p>
          <Playground tool={tool} isShort />
        </div>
      ) : null}
      <ConnectClient />
      <button type="button" class="small" onClick={dismiss}>Hide this</button>
    </section>
  );
}

interface ClientEntry {
  id: string;
  title: string;
  file: string;
  entry: string;
}

/** The address, and what stands in the file of each client. */
function ConnectClient() {
  const [clients, setClients] = useState<ClientEntry[]>([]);
  const [chosen, setChosen] = useState("");
  useEffect(() => {
    read<{ clients: ClientEntry[] }>("/api/clients").then((found) => setClients(found.clients), () => undefined);
  }, []);
  const endpoint = `${location.origin}/mcp`;
  const client = clients.find((one) => one.id === chosen);
  const command = `pactgate connect ${chosen}`;
  return (
    <div class="try">
      <p class="copyable"><strong>Connect your client</strong> <code>{endpoint}</code> <CopyButton text={endpoint} label="Copy the address" /></p>
      {clients.length ? (
        <p class="copyable">
          <label for="client">What my client needs</label>
          <select id="client" value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
            <option value="">choose a client</option>
            {clients.map((one) => <option key={one.id} value={one.id}>{one.title}</option>)}
          </select>
        </p>
      ) : null}
      {client ? (
        <>
          <p class="copyable"><span>Either run</span> <code>{command}</code> <CopyButton text={command} /></p>
          <p class="copyable"><span>or write this into <code>{client.file}</code></span> <CopyButton text={client.entry} /></p>
          <pre class="entry">{client.entry}</pre>
          {who.value?.needsToken ? <p class="dim">Clients need a token here: <code>pactgate keys add {client.id}</code> makes one.</p> : null}
        </>
      ) : null}
    </div>
  );
}

function Rates() {
  useEffect(watchTraffic, []);
  const up = servers.value.filter((server) => server.status === "connected").length;
  const enabled = servers.value.filter((server) => server.status !== "disabled").length;
  const now = rates.value?.all;
  const failed = calls.value.filter((call) => call.outcome !== "ok" && Date.now() - Date.parse(call.time) < WINDOW_MS);
  const codes = Object.entries(Object.groupBy(failed, (call) => (call.outcome === "cancelled" ? call.outcome : (call.code ?? call.outcome)))).sort(([, one], [, other]) => other!.length - one!.length);
  const shown = (ms: number | null | undefined) => (ms == null ? "–" : millis(ms));
  return (
    <section aria-label="The last minute">
      <div class="rates">
        <a class="rate" href={to("servers")}><b>{up} of {enabled}</b><span>servers connected</span></a>
        <a class="rate" href={to("calls")}><b>{now ? perSecond(now.callsPerS) : "–"}</b><span>calls/s, last minute</span><Spark counts={rates.value?.spark ?? []} /></a>
        <a class="rate" href={to("calls")}><b>{shown(now?.p50)}</b><span>p50</span></a>
        <a class="rate" href={to("calls")}><b>{shown(now?.p99)}</b><span>p99</span></a>
        <a class="rate" href={to("calls")}><b>{now ? now.running : "–"}{now?.waiting ? ` + ${now.waiting}` : ""}</b><span>running{now?.waiting ? " + waiting" : ""}</span></a>
        <a class={`rate ${failed.length ? "has-failed" : ""}`} href={to("calls", "", { filter: "outcome:!ok" })}><b>{failed.length}</b><span>not ok</span></a>
      </div>
      {codes.length ? <p class="codes">{codes.slice(0, 6).map(([code, rows]) => <a key={code} href={to("calls", "", { filter: rows![0]!.code === code ? `code:${code} outcome:!cancelled` : `outcome:${code}` })}>{rows!.length} × {code.replaceAll("_", " ").toLowerCase()}</a>)}</p> : null}
    </section>
  );
}

function perSecond(rate: number): string {
  return rate === 0 ? "0" : rate < 10 ? rate.toFixed(2) : rate < 100 ? rate.toFixed(1) : Math.round(rate).toLocaleString();
}

function Spark({ counts }: { counts: number[] }) {
  const most = Math.max(1, ...counts);
  const points = counts.map((count, at) => `${(at * 100) / Math.max(1, counts.length - 1)},${22 - (count / most) * 20}`).join(" ");
  return <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true"><polyline points={points} /></svg>;
}

export function ServerCard({ server }: { server: Server }) {
  const reason = server.trouble ?? server.lastError;
  const rate = rates.value?.byServer.get(server.serverId);
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
          {server.isIdle ? " · starts at its next call" : ""}
          {rate?.callsPerS ? ` · ${perSecond(rate.callsPerS)} calls/s, p50 ${millis(rate.p50 ?? 0)}` : ""}
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
  if (/pactgate login/.test(server.trouble ?? server.lastError ?? "")) return <><a href={to("servers", server.serverId)}>Sign in</a>, or run <code>pactgate login {server.serverId}</code>.</>;
  if (server.status === "connecting" || server.status === "disconnected") return "The gateway is connecting it again.";
  return <>The gateway goes on trying. <code>pactgate doctor {server.serverId}</code> finds the cause.</>;
}

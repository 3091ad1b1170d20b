// The servers: their state, and enabling and disabling, which are tools of the gateway itself and so pass every gate.
import { useEffect, useRef, useState } from "preact/hooks";
import { CallError, callTool, quietly } from "./mcp";
import { nextStep, ServerCard } from "./now";
import { Badge, clockTime, Empty, Fact, fullTime, millis, Text } from "./parts";
import { to } from "./router";
import { read, reason, who } from "./session";
import { rank, type Server, servers } from "./store";

export function Servers({ id }: { id: string }) {
  const server = servers.value.find((one) => one.serverId === id);
  if (id) return server ? <OneServer server={server} /> : <Empty>There is no server {id}. <a href={to("servers")}>All servers</a></Empty>;
  return (
    <section aria-labelledby="servers-title">
      <h1 id="servers-title">Servers</h1>
      {servers.value.length ? <div class="cards">{servers.value.map((one) => <ServerCard key={one.serverId} server={one} />)}</div> : <Empty>No servers yet.</Empty>}
    </section>
  );
}

function OneServer({ server }: { server: Server }) {
  const why = server.trouble ?? server.lastError;
  const isBroken = server.status !== "disabled" && rank(server) < 4;
  return (
    <section aria-labelledby="server-title">
      <p><a href={to("servers")}>← Servers</a></p>
      <h1 id="server-title">{server.serverId} <Badge kind={server.status === "connected" ? "good" : server.status === "disabled" ? "plain" : "broken"}>{server.status}</Badge></h1>
      {isBroken ? <><p class="reason"><Text text={why ?? "It is not connected."} limit={2000} /></p><p>{nextStep(server)}</p></> : null}
      <dl class="facts">
        <Fact name="name">{[server.serverInfo?.title ?? server.serverInfo?.name, server.serverInfo?.version].filter(Boolean).join(" ")}</Fact>
        <Fact name="transport">{server.transport}</Fact>
        <Fact name="protocol version">{server.protocolVersion}</Fact>
        <Fact name="tools"><a href={to("tools", "", { find: server.serverId })}>{server.toolCount}</a></Fact>
        <Fact name="connected since">{server.status === "connected" && server.lastConnectedAt ? fullTime(server.lastConnectedAt) : ""}</Fact>
        <Fact name="connected in">{server.latencyMs === null ? "" : millis(server.latencyMs)}</Fact>
        <Fact name="attempts">{server.attempts}</Fact>
        <Fact name="process">{server.pid}</Fact>
        <Fact name="effects">{server.effectsLevel}</Fact>
        <Fact name="skipped">{server.leftOut?.length ? <ul class="rules">{server.leftOut.map((one) => <li key={one}><Text text={one} limit={300} /></li>)}</ul> : ""}</Fact>
        <Fact name="may be missing">{server.mayHide}</Fact>
      </dl>
      <p><a href={to("calls", "", { filter: `server:${server.serverId}` })}>Its calls</a></p>
      {who.value?.isAdmin ? <><SignInButton server={server} /><Switch server={server} /></> : null}
      <History server={server} />
      {who.value?.isAdmin ? <Logs key={server.serverId} id={server.serverId} /> : null}
    </section>
  );
}

function Switch({ server }: { server: Server }) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const verb = server.status === "disabled" ? "enable" : "disable";
  const change = async () => {
    setBusy(true);
    setProblem("");
    try {
      const result = await callTool(`pactgate.server_${verb}`, { serverId: server.serverId }, null, quietly(AbortSignal.timeout(60_000)));
      if (result.isError) setProblem(result.content?.[0]?.text ?? "It did not work.");
    } catch (fault) {
      setProblem(fault instanceof CallError ? fault.message : reason(fault));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="actions">
      <button type="button" class={verb === "disable" ? "danger" : "primary"} disabled={isBusy} onClick={change}>{verb === "disable" ? "Disable" : "Enable"}</button>
      <span class="dim">{verb === "disable" ? "Ends its connection; its tools are gone until it is enabled. Calls under way fail." : "Connects it again."}</span>
      {problem ? <p class="bad" role="alert">{problem}</p> : null}
    </div>
  );
}

interface Step {
  time: string;
  event: string;
  status: string;
  reason?: string | null;
}

/** What happened to a server lately, newest first. */
function History({ server }: { server: Server }) {
  const [steps, setSteps] = useState<Step[]>([]);
  useEffect(() => {
    const end = new AbortController();
    read<{ servers: (Server & { history: Step[] })[] }>("/api/servers", end.signal).then(
      (found) => setSteps(found.servers.find((one) => one.serverId === server.serverId)?.history.toReversed() ?? []),
      () => undefined, // the next change tries again
    );
    return () => end.abort();
  }, [server]);
  return (
    <>
      <h2>Life line</h2>
      {steps.length ? (
        <ol class="life">
          {steps.map((step, at) => (
            <li key={steps.length - at} class={step.status}>
              <span class="dim">{clockTime(step.time)}</span> <span>{step.event}</span>
              {step.reason ? <span class="bad"><Text text={step.reason} limit={300} /></span> : null}
            </li>
          ))}
        </ol>
      ) : <p class="dim">Nothing has happened to it yet.</p>}
    </>
  );
}

interface Line {
  number: number;
  time: string;
  stream: string;
  level: string;
  text: string;
}

const LOG_MS = 1500;
const MAX_LINES = 500;

/** What the server writes to stderr and sends as log messages; it goes on as long as it is looked at. */
function Logs({ id }: { id: string }) {
  const [lines, setLines] = useState<Line[]>([]);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    let last = 0;
    let timer = 0;
    const end = new AbortController();
    const look = async () => {
      const found = await read<{ lines: Line[]; last: number }>(`/api/logs/${encodeURIComponent(id)}/${last}`, end.signal).catch(() => null);
      if (end.signal.aborted) return;
      if (found?.lines.length) setLines((before) => [...before, ...found.lines].slice(-MAX_LINES));
      last = found?.last ?? last;
      timer = setTimeout(() => void look(), LOG_MS);
    };
    void look();
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, []);
  useEffect(() => {
    const held = box.current;
    if (held && held.scrollHeight - held.scrollTop - held.clientHeight < 200) held.scrollTop = held.scrollHeight;
  }, [lines]);
  return (
    <>
      <h2>Output</h2>
      {lines.length ? (
        <pre class="logs" ref={box} tabIndex={0} aria-label="The last lines that the server wrote">
          {lines.map((line) => <div key={line.number}><span class="dim">{clockTime(line.time)}</span> {line.level ? <b>{line.level} </b> : null}{line.text}</div>)}
        </pre>
      ) : <p class="dim">It has written nothing to stderr, and sent no log message.</p>}
    </>
  );
}

function SignInButton({ server }: { server: Server }) {
  const [url, setUrl] = useState("");
  const [problem, setProblem] = useState("");
  const wants = /pactgate login/.test(server.trouble ?? server.lastError ?? "");
  const begin = () => {
    setProblem("");
    read<{ url: string }>(`/api/sign-ins/${encodeURIComponent(server.serverId)}`, null, {}).then((found) => setUrl(found.url), (fault: unknown) => setProblem(reason(fault)));
  };
  if (!wants) return null;
  if (!/^(localhost|127\..*|\[::1\])$/.test(location.hostname)) return <p class="dim">Sign in where the gateway runs: <code>pactgate login {server.serverId}</code></p>;
  return (
    <div class="actions">
      {/^https?:\/\//.test(url) ? (
        <a class="button primary" href={url} target="_blank" rel="noopener noreferrer">Continue at {new URL(url).host}</a>
      ) : (
        <button type="button" class="primary" onClick={begin}>Sign in</button>
      )}
      <span class="dim">{url ? "Agree there; the gateway then connects by itself." : "Somebody has to agree at the server, in a browser on this machine."}</span>
      {problem ? <p class="bad" role="alert">{problem}</p> : null}
    </div>
  );
}

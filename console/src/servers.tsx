// The servers: their state, and enabling and disabling, which are tools of the gateway itself and so pass every gate.
import { useState } from "preact/hooks";
import { CallError, callTool } from "./mcp";
import { nextStep, ServerCard } from "./now";
import { Badge, Empty, Fact, millis, Text } from "./parts";
import { to } from "./router";
import { who } from "./session";
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
  const reason = server.trouble ?? server.lastError;
  const isBroken = server.status !== "disabled" && rank(server) < 4;
  return (
    <section aria-labelledby="server-title">
      <p><a href={to("servers")}>← Servers</a></p>
      <h1 id="server-title">{server.serverId} <Badge kind={server.status === "connected" ? "good" : server.status === "disabled" ? "plain" : "broken"}>{server.status}</Badge></h1>
      {isBroken ? <><p class="reason"><Text text={reason ?? "It is not connected."} limit={2000} /></p><p>{nextStep(server)}</p></> : null}
      <dl class="facts">
        <Fact name="name">{[server.serverInfo?.title ?? server.serverInfo?.name, server.serverInfo?.version].filter(Boolean).join(" ")}</Fact>
        <Fact name="transport">{server.transport}</Fact>
        <Fact name="protocol version">{server.protocolVersion}</Fact>
        <Fact name="tools"><a href={to("tools", "", { find: server.serverId })}>{server.toolCount}</a></Fact>
        <Fact name="connected since">{server.status === "connected" ? server.lastConnectedAt : ""}</Fact>
        <Fact name="connected in">{server.latencyMs === null ? "" : millis(server.latencyMs)}</Fact>
        <Fact name="attempts">{server.attempts}</Fact>
        <Fact name="process">{server.pid}</Fact>
        <Fact name="effects">{server.effectsLevel}</Fact>
      </dl>
      <p><a href={to("calls", "", { filter: `server:${server.serverId}` })}>Its calls</a></p>
      {who.value?.isAdmin ? <Switch server={server} /> : null}
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
      const watch = { signal: AbortSignal.timeout(60_000), onProgress: () => undefined, ask: async () => ({ action: "cancel" as const }) };
      const result = await callTool(`pactgate.server_${verb}`, { serverId: server.serverId }, null, watch);
      if (result.isError) setProblem(result.content?.[0]?.text ?? "It did not work.");
    } catch (fault) {
      setProblem(fault instanceof CallError ? fault.message : "The gateway can't be reached.");
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

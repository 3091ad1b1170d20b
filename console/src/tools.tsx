// The catalog: what can be called, why it is treated as it is, and the playground.
import { useEffect, useState } from "preact/hooks";
import { Badge, Empty, Fact, JsonTree, millis, Text } from "./parts";
import { Playground } from "./playground";
import { go, place, to } from "./router";
import { reason } from "./session";
import { loadTools, type Tool, tools } from "./store";

const MAX_SHOWN = 200;

export function Tools({ name }: { name: string }) {
  const find = place.value.query.get("find") ?? "";
  const [problem, setProblem] = useState("");
  useEffect(() => {
    loadTools().catch((fault: unknown) => setProblem(reason(fault)));
  }, []);
  const wanted = find.toLowerCase().split(/\s+/).filter(Boolean);
  const found = (tools.value ?? []).filter((tool) => wanted.every((word) => `${tool.fullName} ${tool.title ?? ""} ${tool.category}`.toLowerCase().includes(word)));
  const tool = name ? tools.value?.find((one) => one.fullName === name) : undefined;
  return (
    <section class={`catalog ${name ? "has-item" : ""}`} aria-labelledby="tools-title">
      <div class="list">
        <h1 id="tools-title">Tools</h1>
        <input
          type="search" id="filter" aria-label="Find tools" placeholder="Find" value={find} spellcheck={false}
          onInput={(event) => go(to("tools", name, { find: event.currentTarget.value }), true)}
        />
        <ul>
          {found.slice(0, MAX_SHOWN).map((one) => (
            <li key={one.fullName}>
              <a href={to("tools", one.fullName, { find })} aria-current={one.fullName === name ? "page" : undefined}>
                <span class="name">{one.fullName}</span> <Badge kind={`category ${one.category}`}>{one.category}</Badge>
              </a>
            </li>
          ))}
        </ul>
        {problem ? <p class="bad" role="alert">{problem}</p> : null}
        {found.length > MAX_SHOWN ? <p class="dim">{MAX_SHOWN} of {found.length} are shown; find narrows them.</p> : null}
        {tools.value && !found.length ? <Empty>No tool matches.</Empty> : null}
      </div>
      <div class="detail">
        {tool ? <OneTool key={tool.fullName + (place.value.query.get("again") ?? "")} tool={tool} /> : <Empty>{name && tools.value ? `There is no tool ${name} now.` : "Choose a tool."}</Empty>}
      </div>
    </section>
  );
}

function OneTool({ tool }: { tool: Tool }) {
  return (
    <>
      <p class="back"><a href={to("tools")}>← Tools</a></p>
      <h1>{tool.title ?? tool.toolName}</h1>
      <p><code>{tool.fullName}</code></p>
      <p><Text text={tool.description ?? ""} limit={2000} /></p>
      <h2>Playground</h2>
      <Playground tool={tool} again={place.value.query.get("again") ?? ""} />
      <h2>Policy</h2>
      <dl class="facts">
        <Fact name="category">{tool.category} <span class="dim">({tool.categoryReason})</span></Fact>
        <Fact name="name in lists"><code>{tool.exposedName}</code></Fact>
        <Fact name="changes things">{tool.isReadOnly ? "no" : tool.isDestructive ? "yes, may destroy" : "yes"}{tool.isIdempotent ? ", repeatable" : ""}</Fact>
        <Fact name="timeout">{millis(tool.timeoutMs)} <span class="dim">({tool.timeoutSource})</span></Fact>
        <Fact name="rate limit">{tool.rateLimit ? `${tool.rateLimit.rpm} per minute, burst ${tool.rateLimit.burst}` : ""}</Fact>
        <Fact name="effects">{tool.effectsLevel}</Fact>
        <Fact name="who may call it">{tool.allowedFor ? Object.entries(tool.allowedFor).map(([name, answer]) => <span key={name}>{name} <Badge kind={answer === "yes" ? "good" : answer === "no" ? "broken" : "warned"}>{answer}</Badge> </span>) : "every client that may connect"}</Fact>
        <Fact name="cost">{tool.definitionBytes.toLocaleString()} bytes <span class="dim">(about {Math.ceil(tool.definitionBytes / 4).toLocaleString()} tokens in each conversation that lists it)</span></Fact>
        <Fact name="lock file">{tool.lock ? <Badge kind={tool.lock === "approved" ? "good" : "warned"}>{tool.lock}</Badge> : <span class="dim">not used</span>}</Fact>
      </dl>
      <h2>Input schema</h2>
      <div class="json"><JsonTree value={tool.inputSchema ?? {}} /></div>
      <p><a href={to("calls", "", { filter: `tool:${tool.fullName}` })}>Its calls</a></p>
    </>
  );
}

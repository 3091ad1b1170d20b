// The recorded sessions: what is in them, whether they keep to the protocol, how two of them differ, and whether a server still answers so.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { answerTo, CallError, quietly } from "./mcp";
import { type Exchange, Messages, type Session } from "./messages";
import { Badge, CopyButton, Empty, Fact, fullTime, save, Text } from "./parts";
import { to } from "./router";
import { type Json, read, reason } from "./session";
import { loadTools, servers, type Tool, tools } from "./store";

const MAX_SHOWN_BYTES = 8 * 1024 * 1024;
const SHOWN_EACH = 20; // a copy of the list for each answer would be quadratic

interface Capture {
  name: string;
  leg: string;
  label: string;
  startedAt: string;
  sizeBytes: number;
  isOpen: boolean;
}

interface Difference {
  pointer: string;
  kind: string;
  recorded: string | null;
  now: string | null;
}

interface Compared {
  exchange: number;
  method: string;
  name: string | null;
  skipped?: string | null;
  differences: Difference[];
  more: number;
}

export function Captures({ name }: { name: string }) {
  const [found, setFound] = useState<{ isRecording: boolean; captures: Capture[] } | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    read<{ isRecording: boolean; captures: Capture[] }>("/api/captures").then(setFound, (fault: unknown) => setProblem(reason(fault)));
  }, [name]);
  if (problem) return <Empty>{problem}</Empty>;
  if (!found) return <Empty>Loading …</Empty>;
  const capture = found.captures.find((one) => one.name === name || one.name === `${name}.part`);
  if (name) return capture ? <OneCapture key={capture.name} capture={capture} all={found.captures} /> : <Empty>There is no such capture any more. <a href={to("captures")}>All captures</a></Empty>;
  return (
    <section aria-labelledby="captures-title">
      <h1 id="captures-title">Captures</h1>
      {found.isRecording ? <p class="dim">The gateway records what it says to clients and to servers. Credentials are not written.</p> : <p class="note">Nothing is recorded. Set <code>capture.dir</code> in the configuration, and start the gateway again.</p>}
      {found.captures.length ? (
        <ul class="lines">
          {found.captures.map((one) => (
            <li key={one.name}>
              <a href={to("captures", one.name)}>{title(one)}</a>
              <span class="right">{one.isOpen ? <Badge kind="good">recording</Badge> : null}<span class="dim">{fullTime(one.startedAt)}</span><span class="number">{size(one.sizeBytes)}</span></span>
            </li>
          ))}
        </ul>
      ) : found.isRecording ? <Empty>No session was recorded yet.</Empty> : null}
    </section>
  );
}

function OneCapture({ capture, all }: { capture: Capture; all: Capture[] }) {
  const [sessions, setSessions] = useState<Session[] | null>(null);
  const [problem, setProblem] = useState("");
  const path = `/api/captures/${encodeURIComponent(capture.name)}`;
  const isSmall = capture.sizeBytes <= MAX_SHOWN_BYTES;
  useEffect(() => {
    if (isSmall) read<Session | Session[]>(path).then((held) => setSessions([held].flat()), (fault: unknown) => setProblem(reason(fault)));
  }, []);
  const download = () => void save(capture.name.replace(/\.part$/, ""), path).catch((fault: unknown) => setProblem(reason(fault)));
  return (
    <section aria-labelledby="capture-title">
      <p><a href={to("captures")}>← Captures</a></p>
      <h1 id="capture-title">{title(capture)}</h1>
      <dl class="facts">
        <Fact name="file"><code>{capture.name}</code> <CopyButton text={capture.name} /></Fact>
        <Fact name="began">{fullTime(capture.startedAt)}</Fact>
        <Fact name="size">{size(capture.sizeBytes)}{capture.isOpen ? ", still growing" : ""}</Fact>
        <Fact name="messages">{sessions?.reduce((sum, one) => sum + one.exchanges.length, 0)}</Fact>
      </dl>
      {problem ? <p class="bad" role="alert">{problem}</p> : null}
      <div class="actions"><button type="button" onClick={download}>Download</button></div>
      <Check name={capture.name} />
      <Compare capture={capture} all={all} />
      {sessions?.[0] ? <Replay capture={capture} session={sessions[0]} /> : null}
      <h2>Messages</h2>
      {isSmall ? null : <p class="dim">This capture is too large to be shown here.</p>}
      {sessions?.map((session, at) => <Messages key={at} session={session} />)}
    </section>
  );
}

interface Rule {
  code?: string;
  id?: string;
  rule?: string;
  status: string;
  message: string;
  level?: string;
  url?: string | null;
}

interface Report {
  passed: boolean;
  summary: string;
  error?: { message: string };
  sessions: { server_label: string; results: Rule[]; advisory: Rule[] }[];
}

function Check({ name }: { name: string }) {
  const [report, setReport] = useState<Report | null>(null);
  const job = useJob();
  const check = () => void job.run(async (signal) => setReport(await read<Report>(`/api/capture-checks/${encodeURIComponent(name)}`, signal)));
  const rules = report?.sessions.flatMap((one) => [...one.results, ...one.advisory.filter((rule) => rule.status === "fail")]) ?? [];
  return (
    <Job title="Check" about="Does this session keep to the protocol?" verb="Check it" job={job} onRun={check}>
      {report ? (
        <>
          <p><Badge kind={report.passed ? "good" : "broken"}>{report.passed ? "passed" : "failed"}</Badge> <Text text={report.error?.message ?? report.summary} limit={1000} /></p>
          <ul class="rules">
            {rules.map((rule, at) => (
              <li key={at}><Badge kind={rule.status === "pass" ? "good" : rule.status === "fail" ? "broken" : "plain"}>{rule.status.replaceAll("_", " ")}</Badge> <code>{rule.id ?? rule.code}</code> <Text text={rule.message} limit={300} /></li>
            ))}
          </ul>
        </>
      ) : null}
    </Job>
  );
}

function Compare({ capture, all }: { capture: Capture; all: Capture[] }) {
  const [other, setOther] = useState("");
  const [found, setFound] = useState<Compared[] | null>(null);
  const job = useJob();
  const others = all.filter((one) => one.name !== capture.name && one.leg === capture.leg);
  const compare = () =>
    void job.run(async (signal) => setFound((await read<{ requests: Compared[] }>(`/api/capture-differences/${encodeURIComponent(capture.name)},${encodeURIComponent(other)}`, signal)).requests));
  if (!others.length) return null;
  return (
    <Job title="Compare" about="Which requests of this session got another answer in another one?" verb="Compare" job={job} onRun={compare} isReady={other !== ""} choices={
      <select aria-label="The other capture" value={other} onChange={(event) => setOther(event.currentTarget.value)}>
        <option value="">choose a capture</option>
        {others.map((one) => <option key={one.name} value={one.name}>{title(one)}, {fullTime(one.startedAt)}</option>)}
      </select>
    }>
      {found ? <Differences found={found} words={["here", "there"]} /> : null}
    </Job>
  );
}

function Replay({ capture, session }: { capture: Capture; session: Session }) {
  const own = capture.leg === "servers" ? (session.server_label ?? "") : "";
  const [target, setTarget] = useState(servers.value.some((one) => one.serverId === own) ? own : "");
  const [changes, setChanges] = useState(false);
  const [found, setFound] = useState<Compared[] | null>(null);
  const job = useJob();
  useEffect(() => {
    if (tools.value === undefined) void loadTools().catch(() => undefined);
  }, []);
  const replay = () => void job.run(async (signal) => {
    const done: Compared[] = [];
    for (const [at, exchange] of session.exchanges.entries()) {
      const one = await replayed(exchange, at, target, changes, signal);
      if (signal.aborted) break; // this one was not answered
      if (one) done.push(one);
      if (one && done.length % SHOWN_EACH === 0) setFound([...done]);
    }
    setFound(done);
  });
  return (
    <Job title="Replay" about="Send the same requests again, through every gate of the gateway, and see which answers differ." verb="Replay" job={job} onRun={replay} choices={<>
      <select aria-label="Where to" value={target} onChange={(event) => setTarget(event.currentTarget.value)}>
        <option value="">the gateway, with the names of all servers</option>
        {servers.value.map((one) => <option key={one.serverId} value={one.serverId}>{one.serverId}</option>)}
      </select>
      <label class="check"><input type="checkbox" checked={changes} onChange={() => setChanges(!changes)} /> also call tools that may change something</label>
    </>}>
      {found ? <Differences found={found} words={["recorded", "now"]} /> : null}
    </Job>
  );
}

const NOT_REPLAYED = new Set(["initialize", "server/discover", "ping", "subscriptions/listen", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]);

/** One request sent again, with what is different; null for what is no request of the client. */
async function replayed(exchange: Exchange, at: number, target: string, changes: boolean, signal: AbortSignal): Promise<Compared | null> {
  const { request, response } = exchange;
  if (!request?.method || request.id === undefined || exchange.direction === "server_to_client") return null;
  const name = request.params?.name;
  const row = { exchange: at, method: request.method, name: typeof name === "string" ? name : null, differences: [], more: 0 };
  if (!response) return { ...row, skipped: "it got no answer when it was recorded" };
  if (NOT_REPLAYED.has(request.method)) return { ...row, skipped: "it belongs to the connection, or to another protocol version" };
  if (request.method === "tools/call" && !changes && !toolOf(name, target)?.isReadOnly) return { ...row, skipped: "it may change something" };
  const { _meta: _, ...params } = request.params ?? {};
  try {
    const after = await answerTo(request.method, params as { [name: string]: Json }, quietly(signal), {}, target ? `/mcp/${target}` : "/mcp");
    return { ...row, ...(await read<{ differences: Difference[]; more: number }>("/api/differences", signal, { before: response, after })) };
  } catch (fault) {
    return { ...row, skipped: fault instanceof CallError ? fault.message : reason(fault) };
  }
}

function toolOf(name: unknown, target: string): Tool | undefined {
  return tools.value?.find((tool) => (target ? tool.serverId === target && tool.toolName === name : tool.exposedName === name || tool.fullName === name));
}

function Differences({ found, words }: { found: Compared[]; words: [string, string] }) {
  const different = found.filter((one) => one.differences.length);
  const skipped = found.filter((one) => one.skipped);
  return (
    <div>
      <p><Badge kind={different.length ? "warned" : found.length > skipped.length ? "good" : "plain"}>{different.length ? "different" : found.length > skipped.length ? "the same" : "nothing compared"}</Badge> {different.length} of {found.length - skipped.length} answers differ{skipped.length ? `, ${skipped.length} requests were not sent` : ""}.</p>
      {different.map((one) => (
        <details key={one.exchange} open={different.length < 6}>
          <summary>{one.method} {one.name}</summary>
          <div class="json">
            {one.differences.map((difference) => (
              <p key={difference.pointer}>
                <code>{difference.pointer}</code> <Badge kind="plain">{difference.kind}</Badge>
                {difference.recorded == null ? null : <span class="leaf">{words[0]}: <Text text={difference.recorded} limit={500} /></span>}
                {difference.now == null ? null : <span class="leaf">{words[1]}: <Text text={difference.now} limit={500} /></span>}
              </p>
            ))}
            {one.more ? <p class="dim">and {one.more} more</p> : null}
          </div>
        </details>
      ))}
      {skipped.length ? (
        <details>
          <summary class="dim">{skipped.length} not sent</summary>
          <ul class="rules">{skipped.map((one) => <li key={one.exchange}>{one.method} {one.name}: <span class="dim"><Text text={one.skipped ?? ""} limit={300} /></span></li>)}</ul>
        </details>
      ) : null}
    </div>
  );
}

interface JobState {
  isBusy: boolean;
  problem: string;
  run(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  stop(): void;
}

/** Something that takes a while and may fail; it ends with its screen. */
function useJob(): JobState {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  const run = async (work: (signal: AbortSignal) => Promise<void>) => {
    stop.current = new AbortController();
    setBusy(true);
    setProblem("");
    const { signal } = stop.current;
    await work(signal).catch((fault: unknown) => setProblem(signal.aborted ? "" : reason(fault)));
    setBusy(false);
  };
  return { isBusy, problem, run, stop: () => stop.current.abort() };
}

function Job(props: { title: string; about: string; verb: string; job: JobState; isReady?: boolean; choices?: ComponentChildren; onRun(): void; children: ComponentChildren }) {
  const { job, isReady = true } = props;
  return (
    <section class="job" aria-label={props.title}>
      <h2>{props.title}</h2>
      <p class="dim">{props.about}</p>
      <div class="actions">
        {props.choices}
        {job.isBusy ? <button type="button" onClick={job.stop}>Stop</button> : <button type="button" class="primary" disabled={!isReady} onClick={props.onRun}>{props.verb}</button>}
        {job.isBusy ? <span class="dim">working …</span> : null}
      </div>
      {job.problem ? <p class="bad" role="alert">{job.problem}</p> : null}
      <div aria-live="polite">{props.children}</div>
    </section>
  );
}

function title(capture: Capture): string {
  return capture.leg === "callers" ? `clients at ${capture.label.replace(/^pactgate-/, "/").replaceAll("-", "/")}` : `server ${capture.label}`;
}

function size(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}

// Runs one tool through the gateway's own /mcp: its form, progress, questions, result, the same call in the other revision and for a terminal.
import { useEffect, useRef, useState } from "preact/hooks";
import { defaultsOf, Form, hasBrokenJson, JsonField } from "./form";
import { callToolLegacy, LEGACY_VERSION } from "./legacy";
import { type Answer, type Block, CallError, callTool, type Envelope, envelopeOf, type Question, type Result, VERSION, type Watch } from "./mcp";
import { CallLink, CopyButton, JsonTree, millis, Text } from "./parts";
import { type Json, read, reason } from "./session";
import { cli, curl, python } from "./snippets";
import type { Schema, Tool } from "./store";

type Values = { [name: string]: Json };
type Progress = { done: number; total: number | undefined; message: string | undefined };

interface Asked {
  number: number;
  question: Question;
  answer(given: Answer): void;
}

interface Ended {
  version: string;
  result?: Result;
  problem?: CallError | string;
}

export function Playground({ tool, again = "", isShort = false }: { tool: Tool; again?: string; isShort?: boolean }) {
  const [args, setArgs] = useState<Values>({});
  const [isRaw, setRaw] = useState(!hasFields(tool.inputSchema));
  const [running, setRunning] = useState<string | null>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [ended, setEnded] = useState<Ended[]>([]);
  const [note, setNote] = useState("");
  const [isLoaded, setLoaded] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const stop = useRef(new AbortController());
  const questions = useRef(0);
  useEffect(() => () => stop.current.abort(), []);
  useEffect(() => {
    if (again) argumentsOf(again).then((held) => (setArgs(held), setLoaded(true)), (fault) => setNote(`The arguments of that call are not here: ${reason(fault)}`));
  }, [again]);

  const run = async (version: string, isBeside: boolean) => {
    if (hasBrokenJson(form.current!)) return;
    const controller = (stop.current = new AbortController());
    const watch: Watch = {
      signal: controller.signal,
      onProgress: (done, total, text) => setProgress({ done, total, message: text }),
      ask: (question) =>
        new Promise<Answer>((resolve) => {
          controller.signal.addEventListener("abort", () => resolve({ action: "cancel" }));
          setAsked({ number: ++questions.current, question, answer: resolve });
        }).finally(() => setAsked(null)),
    };
    setRunning(version);
    setProgress(null);
    setNote("");
    if (!isBeside) setEnded([]);
    const call = version === VERSION ? callTool(tool.fullName, args, tool.inputSchema, watch) : callToolLegacy(tool.exposedName, args, watch);
    const end: Ended = await call.then(
      (result) => ({ version, result }),
      (fault: unknown) => ({ version, problem: controller.signal.aborted ? "Cancelled. The gateway has told the server." : fault instanceof CallError ? fault : reason(fault) }),
    );
    setEnded((before) => [...before, end]);
    setRunning(null);
  };
  const other = ended.length === 1 ? (ended[0]!.version === VERSION ? LEGACY_VERSION : VERSION) : null;

  return (
    <div class="playground">
      <form ref={form} noValidate onSubmit={(event) => { event.preventDefault(); void run(VERSION, false); }}>
        {isRaw ? (
          <JsonField key={String(isLoaded)} id="raw-arguments" label="Arguments as JSON" rows={6} value={args} onChange={(held) => setArgs((held ?? {}) as Values)} />
        ) : (
          <Form id={`arg-${tool.exposedName}`} schema={tool.inputSchema ?? {}} value={args} onChange={setArgs} />
        )}
        <div class="actions">
          {running ? (
            <button key="cancel" type="button" class="danger" onClick={() => stop.current.abort()}>Cancel</button>
          ) : (
            <button key="run" type="submit" class="primary">Run {isShort ? tool.toolName : ""}</button>
          )}
          {isShort ? null : (
            <>
              <button type="button" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>{isRaw ? "Form" : "JSON"}</button>
              <span class="copies">
                <span class="dim">Copy as</span>
                <CopyButton label="curl" text={() => curl(tool, args)} /><CopyButton label="CLI" text={() => cli(tool, args)} /><CopyButton label="Python" text={() => python(tool, args)} />
              </span>
            </>
          )}
        </div>
      </form>
      {note ? <p class="note">{note}</p> : null}
      <div aria-live="polite">
        {ended.map((one) => (
          <div key={one.version}>
            {ended.length > 1 ? <h3>As a client of {one.version}</h3> : null}
            {one.problem ? <Problem problem={one.problem} /> : null}
            {one.result ? <Shown result={one.result} /> : null}
          </div>
        ))}
        {running ? <ProgressLine at={progress} /> : null}
      </div>
      {other && !isShort && !running ? (
        <p class="actions"><button type="button" class="small" onClick={() => void run(other, true)}>Call it as a client of {other} too</button></p>
      ) : null}
      {asked ? <QuestionDialog key={asked.number} asked={asked} /> : null}
    </div>
  );
}

/** What a call was made with, from the capture of it. */
async function argumentsOf(requestId: string): Promise<Values> {
  const sessions = await read<{ exchanges: { request?: { method?: string; params?: { arguments?: Values } } }[] }[]>(`/api/messages?filter=id:${encodeURIComponent(requestId)}`);
  const calls = sessions.flatMap((session) => session.exchanges).filter((one) => one.request?.method === "tools/call");
  return calls[0]?.request?.params?.arguments ?? {};
}

function ProgressLine({ at }: { at: Progress | null }) {
  return (
    <p class="progress">
      <progress {...(at?.total ? { value: at.done, max: at.total } : {})} aria-label="Progress of the call" />
      <span>{at ? <Text text={`${at.done}${at.total ? ` of ${at.total}` : ""} ${at.message ?? ""}`} limit={300} /> : "Waiting for the server …"}</span>
    </p>
  );
}

function Problem({ problem }: { problem: CallError | string }) {
  if (typeof problem === "string") return <div class="result"><p>{problem}</p></div>;
  const { code, verdict, requestId } = problem.data;
  const executed = { did_not_run: "it was not executed", may_have_run: "it may have been executed", ran: "it was executed" }[String(verdict)];
  return (
    <div class="result failed">
      <p><strong><Text text={problem.message} limit={2000} /></strong></p>
      <p class="dim">
        {[code ? String(code) : "", executed].filter(Boolean).join(" · ")}
        {typeof requestId === "string" ? <> · <CallLink id={requestId}>what became of the call</CallLink></> : null}
      </p>
    </div>
  );
}

function Shown({ result }: { result: Result }) {
  const envelope: Envelope = envelopeOf(result);
  const structured = result.structuredContent;
  const blocks = (result.content ?? []).filter((block) => structured === undefined || block.type !== "text");
  return (
    <div class={`result ${result.isError ? "failed" : "fine"}`}>
      <p class="dim">
        {result.isError ? "The tool reported a failure" : "Result"}
        {envelope.durationMs === undefined ? "" : ` in ${millis(envelope.durationMs)}`}
        {envelope.cached ? ", from the cache" : ""}
        {envelope.truncated ? ", cut to the size limit" : ""}
        {envelope.requestId ? <> · <CallLink id={envelope.requestId}>what became of the call</CallLink></> : null}
      </p>
      {structured === undefined ? null : <div class="json"><JsonTree value={structured} /></div>}
      {blocks.map((block, at) => <Content key={at} block={block} />)}
    </div>
  );
}

function Content({ block }: { block: Block }) {
  if (block.type === "text") return <pre><Text text={block.text ?? ""} /></pre>;
  if (block.type === "image" && typeof block.data === "string") return <Picture data={block.data} type={String(block.mimeType)} />;
  return <div class="json"><JsonTree value={block as Json} /></div>;
}

/** An image of a server, decoded when somebody wants to see it: as a picture it can't run anything. */
function Picture({ data, type }: { data: string; type: string }) {
  const [url, setUrl] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  const show = () => {
    try {
      setUrl(URL.createObjectURL(new Blob([Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))], { type: /^image\//.test(type) ? type : "" })));
    } catch {
      setProblem("This is no image.");
    }
  };
  if (url) return <img src={url} alt="An image in the result" onError={() => setProblem("The browser can't show it.")} />;
  return <p><button type="button" class="small" onClick={show}>Show the image ({type}, {Math.round(data.length * 0.00075).toLocaleString()} KB)</button> {problem}</p>;
}

function QuestionDialog({ asked }: { asked: Asked }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const params = asked.question.params;
  const schema = (params.requestedSchema ?? {}) as Schema;
  const [values, setValues] = useState<Values>(() => defaultsOf(schema));
  useEffect(() => dialog.current?.showModal(), []);
  const url = typeof params.url === "string" && /^https?:\/\//.test(params.url) ? params.url : null;
  const isForm = asked.question.method === "elicitation/create" && !("url" in params);
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    if (!hasBrokenJson(event.currentTarget as HTMLElement)) asked.answer(isForm ? { action: "accept", content: values } : { action: "accept" });
  };
  return (
    <dialog ref={dialog} aria-labelledby="question-title" onCancel={(event) => { event.preventDefault(); asked.answer({ action: "cancel" }); }}>
      <form method="dialog" onSubmit={send}>
        <h2 id="question-title">{url ? "The server wants you to open a page" : "The server asks"}</h2>
        <p class="asked"><Text text={String(params.message ?? asked.question.method)} limit={2000} /></p>
        {isForm ? <Form id="question" schema={schema} value={values} onChange={setValues} /> : null}
        {url ? <p class="asked"><a href={url} target="_blank" rel="noopener noreferrer">{url}</a></p> : null}
        <div class="actions">
          <button type="submit" class="primary">{isForm ? "Answer" : "Done"}</button>
          <button type="button" onClick={() => asked.answer({ action: "decline" })}>Decline</button>
          <button type="button" onClick={() => asked.answer({ action: "cancel" })}>Cancel</button>
        </div>
      </form>
    </dialog>
  );
}

function hasFields(schema: Schema | null): boolean {
  return schema !== null && (schema.type === undefined || schema.type === "object") && !("oneOf" in schema) && !("anyOf" in schema);
}

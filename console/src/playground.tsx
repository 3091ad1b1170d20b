// Runs one tool through the gateway's own /mcp: its form, progress, questions, result, and the same call for a terminal.
import { useEffect, useRef, useState } from "preact/hooks";
import { Form, hasBrokenJson, JsonField } from "./form";
import { type Answer, CallError, callTool, type Envelope, envelopeOf, message, type Question, type Result } from "./mcp";
import { CallLink, CopyButton, JsonTree, millis, Text } from "./parts";
import type { Json } from "./session";
import type { Schema, Tool } from "./store";

type Values = { [name: string]: Json };

interface Running {
  stop: AbortController;
  since: number;
  progress?: { done: number; total: number | undefined; message: string | undefined };
}

interface Asked {
  question: Question;
  answer(given: Answer): void;
}

export function Playground({ tool, isShort = false }: { tool: Tool; isShort?: boolean }) {
  const [args, setArgs] = useState<Values>({});
  const [isRaw, setRaw] = useState(!hasFields(tool.inputSchema));
  const [running, setRunning] = useState<Running | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [result, setResult] = useState<Result | null>(null);
  const [problem, setProblem] = useState<CallError | string | null>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);

  const run = async (event: SubmitEvent) => {
    event.preventDefault();
    if (hasBrokenJson(event.currentTarget as HTMLElement)) return;
    const controller = (stop.current = new AbortController());
    const begun: Running = { stop: controller, since: performance.now() };
    setRunning(begun);
    setResult(null);
    setProblem(null);
    try {
      const answer = await callTool(tool.fullName, args, tool.inputSchema, {
        signal: controller.signal,
        onProgress: (done, total, text) => setRunning({ ...begun, progress: { done, total, message: text } }),
        ask: (question) =>
          new Promise((resolve) => {
            controller.signal.addEventListener("abort", () => resolve({ action: "cancel" }));
            setAsked({ question, answer: resolve });
          }).finally(() => setAsked(null)) as Promise<Answer>,
      });
      setResult(answer);
    } catch (fault) {
      if (controller.signal.aborted) setProblem("Cancelled. The gateway has told the server.");
      else setProblem(fault instanceof CallError ? fault : "The gateway can't be reached.");
    } finally {
      setRunning(null);
    }
  };

  return (
    <div class="playground">
      <form onSubmit={run} noValidate>
        {isRaw ? (
          <JsonField id="raw-arguments" label="Arguments as JSON" rows={6} value={args} onChange={(held) => setArgs((held ?? {}) as Values)} />
        ) : (
          <Form id={`arg-${tool.exposedName}`} schema={tool.inputSchema ?? {}} value={args} onChange={setArgs} />
        )}
        <div class="actions">
          {running ? (
            <button key="cancel" type="button" class="danger" onClick={() => running.stop.abort()}>Cancel</button>
          ) : (
            <button key="run" type="submit" class="primary">Run {isShort ? tool.toolName : ""}</button>
          )}
          {isShort ? null : (
            <>
              <button type="button" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>{isRaw ? "Form" : "JSON"}</button>
              <CopyButton label="Copy as curl" text={curl(tool, args)} />
              <CopyButton label="Copy as CLI" text={cli(tool, args)} />
            </>
          )}
        </div>
      </form>
      <div aria-live="polite">
        {running ? <Progress running={running} /> : null}
        {problem ? <Problem problem={problem} /> : null}
        {result ? <Shown result={result} /> : null}
      </div>
      {asked ? <QuestionDialog key={asked.question.method} asked={asked} /> : null}
    </div>
  );
}

function Progress({ running }: { running: Running }) {
  const at = running.progress;
  return (
    <p class="progress">
      <progress {...(at?.total ? { value: at.done, max: at.total } : {})} aria-label="Progress of the call" />
      <span>{at ? `${at.done}${at.total ? ` of ${at.total}` : ""} ${at.message ?? ""}` : "Waiting for the server …"}</span>
    </p>
  );
}

function Problem({ problem }: { problem: CallError | string }) {
  if (typeof problem === "string") return <div class="result note"><p>{problem}</p></div>;
  const { code, verdict, requestId, request_id: other } = problem.data;
  const id = requestId ?? other;
  return (
    <div class="result failed">
      <p><strong><Text text={problem.message} limit={2000} /></strong></p>
      <p class="dim">
        {[code ? String(code) : "", verdict ? `action: ${String(verdict).replaceAll("_", " ")}` : ""].filter(Boolean).join(" · ")}
        {typeof id === "string" ? <> · <CallLink id={id}>open the call</CallLink></> : null}
      </p>
    </div>
  );
}

function Shown({ result }: { result: Result }) {
  const envelope: Envelope = envelopeOf(result);
  const structured = result.structuredContent;
  return (
    <div class={`result ${result.isError ? "failed" : "fine"}`}>
      <p class="dim">
        {result.isError ? "The tool reported a failure" : "Result"}
        {envelope.durationMs === undefined ? "" : ` in ${millis(envelope.durationMs)}`}
        {envelope.cached ? ", from the cache" : ""}
        {envelope.truncated ? ", cut to the size limit" : ""}
        {envelope.requestId ? <> · <CallLink id={envelope.requestId}>open the call</CallLink></> : null}
      </p>
      {structured === undefined ? null : <div class="json"><JsonTree value={structured} /></div>}
      {(result.content ?? []).filter(() => structured === undefined).map((block, at) => (
        <div key={at}>
          {block.type === "text" ? <pre><Text text={block.text ?? ""} /></pre> : <div class="json"><JsonTree value={block as Json} /></div>}
        </div>
      ))}
    </div>
  );
}

function QuestionDialog({ asked }: { asked: Asked }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [values, setValues] = useState<Values>({});
  useEffect(() => dialog.current?.showModal(), []);
  const params = asked.question.params;
  const url = typeof params.url === "string" && /^https?:\/\//.test(params.url) ? params.url : null;
  const isForm = asked.question.method === "elicitation/create" && !("url" in params);
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    if (!hasBrokenJson(event.currentTarget as HTMLElement)) asked.answer(isForm ? { action: "accept", content: values } : { action: "accept" });
  };
  return (
    <dialog ref={dialog} aria-labelledby="question-title" onCancel={(event) => { event.preventDefault(); asked.answer({ action: "cancel" }); }}>
      <form method="dialog" onSubmit={send}>
        <h2 id="question-title">The server asks</h2>
        <p><Text text={String(params.message ?? asked.question.method)} limit={2000} /></p>
        {isForm ? <Form id="question" schema={(params.requestedSchema ?? {}) as Schema} value={values} onChange={setValues} /> : null}
        {url ? <p><a href={url} target="_blank" rel="noopener noreferrer">{url}</a></p> : null}
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

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function cli(tool: Tool, args: Values): string {
  const words = Object.entries(args).map(([name, value]) => (typeof value === "string" ? `${name}=${value}` : `${name}:=${JSON.stringify(value)}`));
  return ["pactgate", "call", tool.fullName, ...words, "--url", location.origin].map(quoted).join(" ");
}

function curl(tool: Tool, args: Values): string {
  const { headers, body } = message("tools/call", { name: tool.fullName, arguments: args }, 1);
  const lines = Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  return [`curl -s ${quoted(`${location.origin}/mcp`)}`, ...lines, `-d ${quoted(JSON.stringify(body))}`].join(" \\\n  ");
}

// The messages of a recorded session, as they passed.
import { useState } from "preact/hooks";
import { Badge, JsonTree, millis } from "./parts";
import type { Json } from "./session";

export interface Exchange {
  direction?: string;
  request?: { id?: Json; method?: string; params?: { name?: Json; uri?: Json; [name: string]: Json | undefined } };
  response?: { [name: string]: Json };
  at_ms?: number;
  response_at_ms?: number;
  closed_by?: string;
  http?: { status?: number; request_headers?: Json; response_headers?: Json };
  notifications?: Json[];
}

export interface Session {
  server_label?: string;
  leg?: string;
  started_at?: string;
  missing?: number;
  exchanges: Exchange[];
}

const PAGE = 100;

/** `since`: times are shown from this moment on, which both sides of a call share. */
export function Messages({ session, since }: { session: Session; since?: number }) {
  const [shown, setShown] = useState(PAGE);
  const { exchanges } = session;
  const shiftMs = since === undefined ? 0 : Date.parse(session.started_at ?? "") - since;
  return (
    <div class="messages">
      <h3>{session.leg === "callers" ? "Between client and gateway" : session.leg === "servers" ? `Between gateway and ${session.server_label}` : session.server_label}</h3>
      {exchanges.slice(0, shown).map((exchange, at) => <OneExchange key={at} exchange={exchange} shiftMs={shiftMs} />)}
      {exchanges.length > shown ? <button type="button" class="small" onClick={() => setShown(shown + 10 * PAGE)}>{exchanges.length - shown} more</button> : null}
      {session.missing ? <p class="note">{session.missing} messages came later and are not recorded.</p> : null}
    </div>
  );
}

function OneExchange({ exchange, shiftMs }: { exchange: Exchange; shiftMs: number }) {
  const [isOpen, setOpen] = useState(false);
  const { request, response } = exchange;
  const took = exchange.at_ms !== undefined && exchange.response_at_ms !== undefined ? exchange.response_at_ms - exchange.at_ms : undefined;
  const failed = response !== undefined && ("error" in response || (response.result as { isError?: boolean } | undefined)?.isError === true);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="dim number">{exchange.at_ms === undefined ? "" : offset(exchange.at_ms + shiftMs)}</span>{" "}
        {exchange.direction === "server_to_client" ? "← " : "→ "}
        <span class="name">{nameOf(exchange)}</span>{" "}
        {failed ? <Badge kind="broken">error</Badge> : null}
        {exchange.closed_by ? <Badge kind="warned">ended by the {exchange.closed_by}</Badge> : null}
        <span class="dim number">{took === undefined ? "" : millis(took)}</span>
      </summary>
      {isOpen ? (
        <div class="json">
          {request ? <JsonTree name="request" value={request as Json} /> : null}
          {response ? <JsonTree name="response" value={response} /> : null}
          {exchange.notifications ? <JsonTree name="also on this stream" value={exchange.notifications} depth={2} /> : null}
          {exchange.http ? <JsonTree name="HTTP" value={exchange.http as Json} depth={2} /> : null}
        </div>
      ) : null}
    </details>
  );
}

/** Clocks of a capture and of a call are read in turn, so a little before is at once. */
function offset(ms: number): string {
  return ms < -50 ? "earlier" : `+${millis(Math.max(0, ms))}`;
}

function nameOf({ request, http }: Exchange): string {
  const named = request?.params?.name ?? request?.params?.uri;
  if (!request) return http ? "HTTP request" : "response";
  return `${request.method ?? "response"}${typeof named === "string" ? ` ${named.slice(0, 100)}` : ""}`;
}

// The frame of the console: who is signed in, which screen is shown, and whether the stream is alive.
import { render } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { Calls, OneCall } from "./calls";
import { Captures } from "./captures";
import { Now } from "./now";
import { toast } from "./parts";
import { place, to, watchLinks } from "./router";
import { Servers } from "./servers";
import { begin, issuers, signIn, signInAt, signInProblem, signOut, who } from "./session";
import { Settings } from "./settings";
import { endStream, isLive, startStream, streamFor } from "./store";
import "./style.css";
import { Tools } from "./tools";

const SCREENS: Record<string, string> = { now: "Now", calls: "Calls", tools: "Tools", servers: "Servers", captures: "Captures", settings: "Settings" };
const OF_ADMINS = ["captures", "settings"];

function App() {
  if (who.value === undefined) return <main class="empty">Loading …</main>;
  return who.value === null ? <SignIn /> : <Console />;
}

function Console() {
  const { screen, item, query } = place.value;
  const filter = screen === "calls" && !item ? (query.get("filter") ?? "") : "";
  useEffect(() => {
    startStream(filter);
    return endStream;
  }, []);
  useEffect(() => streamFor(filter), [filter]);
  useEffect(() => {
    document.title = `${item || (Object.hasOwn(SCREENS, screen) && SCREENS[screen]) || "Console"} · Pactgate`;
  }, [screen, item]);
  return (
    <>
      <a class="skip" href="#content">Skip to the content</a>
      <header class="bar">
        <a class="brand" href={to("now")}>Pactgate</a>
        <nav aria-label="Screens">
          {Object.entries(SCREENS).filter(([name]) => who.value?.isAdmin || !OF_ADMINS.includes(name)).map(([name, title]) => (
            <a key={name} href={to(name)} aria-current={name === screen ? "page" : undefined}>{title}</a>
          ))}
        </nav>
        <span class={`live ${isLive.value ? "on" : ""}`} role="status">{isLive.value ? "live" : "connecting"}</span>
        <button type="button" class="small" onClick={() => void signOut()}>Sign out</button>
      </header>
      <main id="content">
        <Screen screen={screen} item={item} />
      </main>
      <div class="toast" role="status">{toast.value}</div>
    </>
  );
}

/** What a server wrote may have any shape: where it can't be shown, the rest of the page stays. */
function Screen({ screen, item }: { screen: string; item: string }) {
  const [fault, reset] = useErrorBoundary();
  useEffect(() => {
    if (fault) reset();
  }, [screen, item]);
  if (fault) return <p class="empty" role="alert">This can't be shown: {String(fault)}</p>;
  if (!Object.hasOwn(SCREENS, screen)) return <p class="empty">There is no such screen. <a href={to("now")}>Now</a></p>;
  if (OF_ADMINS.includes(screen) && !who.value?.isAdmin) return <p class="empty">This is for administrators.</p>;
  if (screen === "calls") return item ? <OneCall id={item} /> : <Calls />;
  if (screen === "tools") return <Tools name={item} />;
  if (screen === "servers") return <Servers id={item} />;
  if (screen === "captures") return <Captures name={item} />;
  return screen === "settings" ? <Settings item={item} /> : <Now />;
}

function SignIn() {
  const [secret, setSecret] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [known, setKnown] = useState<string[]>([]);
  useEffect(() => {
    issuers().then(setKnown, () => undefined); // a token still does
  }, []);
  const send = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    await signIn(secret.trim());
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <h1>Pactgate</h1>
      {known.map((issuer) => (
        <button key={issuer} type="button" class="primary" onClick={() => void signInAt(issuer)}>Sign in with {issuer.replace(/^https?:\/\/|\/$/g, "")}</button>
      ))}
      <p>{known.length ? "Or open" : "Open"} the link that <code>pactgate serve</code> printed: it signs in once. Or use a token or key of yours.</p>
      <form onSubmit={send}>
        <div class="field">
          <label for="secret">Token, key or code</label>
          <input id="secret" type="password" autocomplete="off" required value={secret} onInput={(event) => setSecret(event.currentTarget.value)} />
        </div>
        <div class="actions"><button type="submit" class={known.length ? "" : "primary"} disabled={isBusy}>Sign in</button></div>
      </form>
      {signInProblem.value ? <p class="bad" role="alert">{signInProblem.value}</p> : null}
    </main>
  );
}

document.addEventListener("keydown", (event) => {
  const isTyping = (event.target as Element).matches?.("input, textarea, select");
  const field = document.getElementById("filter");
  if (event.key === "/" && !isTyping && field) {
    event.preventDefault();
    field.focus();
  }
});
watchLinks();
addEventListener("hashchange", () => void begin()); // a link pasted into an open page
void begin();
render(<App />, document.getElementById("app")!);

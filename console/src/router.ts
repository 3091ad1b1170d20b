// Every screen has an address: the path says which, the query what is shown in it.
import { computed, signal } from "@preact/signals";

const ROOT = "/console/";
const address = signal(location.pathname + location.search);

interface Place {
  screen: string;
  item: string;
  query: URLSearchParams;
}

export const place = computed<Place>(() => {
  const url = new URL(address.value, location.origin);
  const [screen = "", ...rest] = url.pathname.replace(ROOT, "").split("/");
  return { screen: screen || "now", item: decode(rest.join("/")), query: url.searchParams };
});

export function to(screen: string, item = "", query: Record<string, string> = {}): string {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  const path = ROOT + (screen === "now" ? "" : screen) + (item ? `/${encodeURIComponent(item)}` : "");
  return asked ? `${path}?${asked}` : path;
}

export function go(url: string, replace = false): void {
  history[replace ? "replaceState" : "pushState"](null, "", url);
  address.value = location.pathname + location.search;
}

/** Follow links to our own screens without loading the page again. */
export function watchLinks(): void {
  addEventListener("popstate", () => (address.value = location.pathname + location.search));
  document.addEventListener("click", (event) => {
    const link = (event.target as Element | null)?.closest?.("a");
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (link && isPlain && link.origin === location.origin && link.pathname.startsWith(ROOT) && !link.target) {
      event.preventDefault();
      go(link.pathname + link.search);
      scrollTo(0, 0);
    }
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

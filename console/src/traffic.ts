// How calls go now, from two readings of the gateway's counters, as `pactgate top` shows it: the rows that are shown may be some of them only.
import { signal } from "@preact/signals";
import { read } from "./session";

interface Rate {
  callsPerS: number;
  p50: number | null;
  p99: number | null;
  running: number;
  waiting: number;
}

interface Row {
  serverId: string;
  calls: number;
  running: number;
  waiting: number;
  counts?: number[];
}

interface Reading {
  atMs: number;
  boundsMs: number[];
  servers: Row[];
}

const LOOK_MS = 2000;
const WINDOW_MS = 60_000;
const SPARK_MS = 2000;

/** Of the last minute: in all, and by server; null where the gateway does not tell. */
export const rates = signal<{ all: Rate; byServer: Map<string, Rate>; spark: number[] } | null>(null);
let readings: Reading[] = [];

/** Look as long as somebody watches. Returns what ends it. */
export function watchTraffic(): () => void {
  let timer = 0;
  let isOver = false;
  const look = async () => {
    const found = await read<Reading>("/api/traffic").catch(() => null);
    if (isOver) return;
    if (found) take(found);
    timer = setTimeout(() => void look(), LOOK_MS);
  };
  void look();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

function take(now: Reading): void {
  if ((readings.at(-1)?.atMs ?? 0) > now.atMs) readings = []; // the gateway was started again
  if (!readings.length && now.atMs <= WINDOW_MS) readings = [{ ...now, atMs: 0, servers: [] }]; // all of its time is the last minute
  readings = [...readings.filter((one) => now.atMs - one.atMs <= WINDOW_MS + LOOK_MS), now];
  const first = readings[0]!;
  const seconds = Math.max(now.atMs - first.atMs, LOOK_MS) / 1000;
  const before = new Map(first.servers.map((row) => [row.serverId, row]));
  const deltas = now.servers.map((row) => ({ row, counts: minus(row.counts ?? [], before.get(row.serverId)?.counts) }));
  const rate = (counts: number[], row: Pick<Row, "running" | "waiting">): Rate => ({
    callsPerS: sum(counts) / seconds, p50: quantile(counts, now.boundsMs, 0.5), p99: quantile(counts, now.boundsMs, 0.99), running: row.running, waiting: row.waiting,
  });
  const all = deltas.reduce<number[]>((counts, one) => one.counts.map((count, at) => count + (counts[at] ?? 0)), []);
  const under = { running: sum(now.servers.map((row) => row.running)), waiting: sum(now.servers.map((row) => row.waiting)) };
  rates.value = { all: rate(all, under), byServer: new Map(deltas.map((one) => [one.row.serverId, rate(one.counts, one.row)])), spark: sparkOf(now.atMs) };
}

/** Calls in each two seconds of the last minute. */
function sparkOf(nowMs: number): number[] {
  const counts = new Array<number>(WINDOW_MS / SPARK_MS).fill(0);
  readings.slice(1).forEach((one, at) => {
    if (!readings[at]!.atMs) return; // nobody looked when these calls were made
    const slot = counts.length - 1 - Math.floor((nowMs - one.atMs) / SPARK_MS);
    const calls = totalOf(one) - totalOf(readings[at]!);
    if (slot >= 0) counts[slot]! += Math.max(0, calls);
  });
  return counts;
}

function totalOf(reading: Reading): number {
  return sum(reading.servers.map((row) => row.calls));
}

function minus(counts: number[], before: number[] | undefined): number[] {
  return counts.map((count, at) => count - (before?.[at] ?? 0));
}

function sum(counts: number[]): number {
  return counts.reduce((all, count) => all + count, 0);
}

/** Interpolated within its bucket, as Prometheus does; of the last bucket its lower bound. */
function quantile(counts: number[], bounds: number[], part: number): number | null {
  const wanted = part * sum(counts);
  if (!wanted) return null;
  let reached = 0;
  let lower = 0;
  for (const [at, upper] of bounds.entries()) {
    const count = counts[at] ?? 0;
    if (count && reached + count >= wanted) return lower + ((upper - lower) * (wanted - reached)) / count;
    reached += count;
    lower = upper;
  }
  return lower;
}

// The same call for a terminal or a program, ready to be pasted.
import { message, mirrored } from "./mcp";
import { isExact, type Json, who } from "./session";
import type { Tool } from "./store";

type Values = { [name: string]: Json };

export function cli(tool: Tool, args: Values): string {
  const words = Object.entries(args).map(([name, value]) => (typeof value === "string" ? `${name}=${value}` : `${name}:=${JSON.stringify(value)}`));
  return ["pactgate", "call", tool.fullName, ...words, "--url", location.origin].map(quoted).join(" ");
}

export function curl(tool: Tool, args: Values): string {
  const { headers, body } = message("tools/call", { name: tool.fullName, arguments: args }, 1);
  const all = Object.entries({ ...headers, ...mirrored(tool.inputSchema, args) });
  const lines = all.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  if (who.value?.needsToken) lines.push('-H "Authorization: Bearer $PACTGATE_TOKEN"');
  return [`curl -s ${quoted(`${location.origin}/mcp`)}`, ...lines, `-d ${quoted(JSON.stringify(body))}`].join(" \\\n  ");
}

/** For the official SDK (2.x), which speaks both revisions. */
export function python(tool: Tool, args: Values): string {
  const url = JSON.stringify(`${location.origin}/mcp`);
  const token = who.value?.needsToken ?? false;
  const target = token ? `streamable_http_client(${url}, http_client=create_mcp_http_client(headers=HEADERS))` : url;
  return [
    "import asyncio",
    ...(token ? ["import os"] : []),
    "",
    "from mcp import Client",
    ...(token ? ["from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client"] : []),
    ...(token ? ["", 'HEADERS = {"Authorization": "Bearer " + os.environ["PACTGATE_TOKEN"]}'] : []),
    "",
    "",
    "async def main():",
    `    async with Client(${target}) as client:`,
    `        print(await client.call_tool(${JSON.stringify(tool.exposedName)}, ${literal(args)}))`,
    "",
    "",
    "asyncio.run(main())",
    "",
  ].join("\n");
}

function literal(value: Json): string {
  if (value === null) return "None";
  if (isExact(value)) return value.rawJSON;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, held]) => `${JSON.stringify(name)}: ${literal(held)}`).join(", ")}}`;
  return JSON.stringify(value);
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

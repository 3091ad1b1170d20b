// One visit with a TypeScript client, as tour.py does with the Python one. Arguments: the folder whose node_modules holds the
// clients, and the job as JSON: `client` (ts1, ts2-legacy, ts2-auto, ts2-modern), `url` or `command`, `tool`, `arguments`.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(path.join(path.resolve(process.argv[2]), 'here.js'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const job = JSON.parse(process.argv[3]);
const isOlder = job.client === 'ts1';
const names = isOlder
  ? ['sdk/client/index.js', 'sdk/client/streamableHttp.js', 'sdk/client/stdio.js']
  : ['client', 'client', 'client/stdio'];
const [{ Client }, { StreamableHTTPClientTransport }, { StdioClientTransport }] = await Promise.all(
  names.map((name) => load(`@modelcontextprotocol/${name}`)),
);
const modes = { 'ts2-legacy': 'legacy', 'ts2-auto': 'auto', 'ts2-modern': { pin: '2026-07-28' } };
const info = { name: 'pactgate-tour', version: '1' };

const attempt = (promise) => promise.catch(() => undefined);

async function visit() {
  const transport = job.url
    ? new StreamableHTTPClientTransport(new URL(job.url))
    : new StdioClientTransport({ command: job.command[0], args: job.command.slice(1), stderr: 'inherit' });
  const client = isOlder ? new Client(info) : new Client(info, { versionNegotiation: { mode: modes[job.client] } });
  await client.connect(transport);
  const tools = await attempt(client.listTools());
  const resources = await attempt(client.listResources());
  await attempt(client.listResourceTemplates());
  const prompts = await attempt(client.listPrompts());
  for (const resource of (resources?.resources ?? []).slice(0, 2)) await attempt(client.readResource({ uri: resource.uri }));
  for (const prompt of (prompts?.prompts ?? []).slice(0, 3)) {
    if (!(prompt.arguments ?? []).some((argument) => argument.required)) await attempt(client.getPrompt({ name: prompt.name }));
  }
  const call = { name: job.tool, arguments: job.arguments };
  const result = await attempt(isOlder ? client.callTool(call, undefined, { onprogress: () => {} }) : client.callTool(call));
  await attempt(client.callTool({ name: 'no_such_tool', arguments: {} }));
  await client.close();
  return { tools: tools?.tools.length ?? 0, called: result !== undefined };
}

const late = setTimeout(() => process.exit(3), 30000);
const outcome = await visit().catch((problem) => ({ error: String(problem?.stack ?? problem) }));
clearTimeout(late);
console.log(JSON.stringify(outcome));
process.exit(outcome.error ? 1 : 0);

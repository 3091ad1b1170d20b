// Drives the TypeScript clients: @modelcontextprotocol/sdk 1.x, and @modelcontextprotocol/client 2.x in its three modes.
// Jobs as JSON on stdin, one JSON line per job on stdout. The only argument is the folder whose node_modules holds them.
import { createRequire } from 'node:module';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const require = createRequire(path.join(path.resolve(process.argv[2]), 'here.js'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client: OlderClient } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport: OlderTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');

const info = { name: 'pactgate-interop', version: '1' };
const modes = { 'ts2-legacy': 'legacy', 'ts2-auto': 'auto', 'ts2-modern': { pin: '2026-07-28' } };

async function play(job) {
  const url = new URL(job.url);
  const isOlder = job.client === 'ts1';
  const transport = isOlder ? new OlderTransport(url) : new StreamableHTTPClientTransport(url);
  const client = isOlder
    ? new OlderClient(info)
    : new Client(info, { versionNegotiation: { mode: modes[job.client] } });
  await client.connect(transport);
  try {
    const listed = (await client.listTools()).tools.map((tool) => tool.name);
    const result = await client.callTool({ name: job.tool, arguments: job.arguments });
    const said = result.content.map((block) => block.text ?? '').join('');
    return { listed, text: said, version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion };
  } finally {
    await client.close();
  }
}

function bounded(promise, seconds) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

for (const job of JSON.parse(await text(process.stdin))) {
  const outcome = await bounded(play(job), job.seconds).catch((problem) => ({ error: String(problem?.stack ?? problem) }));
  console.log(JSON.stringify({ job, ...outcome }));
}
process.exit(0);

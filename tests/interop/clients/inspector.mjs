// Drives the command line of @modelcontextprotocol/inspector in its three modes, many commands in one process:
// the same entry its `mcp-inspector --cli` launcher calls, with the same arguments, and what it prints is read back.
// Jobs as JSON on stdin, one JSON line per job on stdout. The only argument is the folder whose node_modules holds it.
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const package_ = path.join(path.resolve(process.argv[2]), 'node_modules', '@modelcontextprotocol', 'inspector');
const { runCli } = await import(pathToFileURL(path.join(package_, 'clients', 'cli', 'build', 'index.js')).href);
const write = process.stdout.write.bind(process.stdout);

async function command(...words) {
  const printed = [];
  process.stdout.write = (chunk, encoding, done) => {
    printed.push(String(chunk));
    (typeof encoding === 'function' ? encoding : done)?.();
    return true;
  };
  try {
    await runCli(['node', 'mcp-inspector', ...words]);
  } finally {
    process.stdout.write = write;
  }
  return JSON.parse(printed.join(''));
}

async function play(job) {
  const era = job.client.replace('inspector-', '');
  const where = [job.url, '--transport', 'http', '--protocol-era', era, '--format', 'json', '-q'];
  const list = await command(...where, '--method', 'tools/list');
  const call = ['--method', 'tools/call', '--tool-name', job.tool, '--tool-args-json', JSON.stringify(job.arguments)];
  const result = await command(...where, ...call);
  const listed = (list.tools ?? list.result.tools).map((tool) => tool.name);
  const said = (result.content ?? result.result.content).map((block) => block.text ?? '').join('');
  return { listed, text: said, version: era };
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
  write(JSON.stringify({ job, ...outcome }) + '\n');
}
process.exit(0);

// The TypeScript clients with their own OAuth: from a bare 401 over discovery, registration and login to a call.
// Jobs as JSON on stdin, one JSON line per job on stdout. The only argument is the folder whose node_modules holds them.
import { createRequire } from 'node:module';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const require = createRequire(path.join(path.resolve(process.argv[2]), 'here.js'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const older = {
  ...(await load('@modelcontextprotocol/sdk/client/index.js')),
  ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')),
};
const newer = await load('@modelcontextprotocol/client');
const info = { name: 'pactgate-interop', version: '1' };
const callback = 'http://127.0.0.1:9/callback';

// Keeps what a client's own storage would, and plays the browser: it follows redirects with the cookies of the provider.
class Login {
  redirectUrl = callback;
  clientMetadata = {
    client_name: 'pactgate-interop',
    redirect_uris: [callback],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  logins = 0;
  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.held; }
  saveTokens(tokens) { this.held = tokens; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  discoveryState() { return this.discovery; }
  saveDiscoveryState(state) { this.discovery = state; }
  async redirectToAuthorization(url) {
    this.logins += 1;
    const cookies = new Map();
    for (let steps = 0; steps < 20 && !String(url).startsWith(callback); steps += 1) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const answer = await fetch(url, { redirect: 'manual', headers: { cookie } });
      for (const line of answer.headers.getSetCookie()) {
        const [name, ...value] = line.split(';')[0].split('=');
        cookies.set(name, value.join('='));
      }
      url = new URL(answer.headers.get('location') ?? fail(`${answer.status} at ${url}: ${await answer.text()}`), url);
    }
    this.answer = new URL(url).searchParams;
  }
}

function fail(reason) {
  throw new Error(reason);
}

async function play(job) {
  const login = new Login();
  if (job.clientId) login.client = { client_id: job.clientId, issuer: job.issuer };
  const { Client, StreamableHTTPClientTransport } = job.client === 'ts1' ? older : newer;
  const open = () => new StreamableHTTPClientTransport(new URL(job.url), { authProvider: login });
  const connect = async () => {
    const client = job.client === 'ts1' ? new Client(info) : new Client(info, { versionNegotiation: { mode: 'auto' } });
    const transport = open();
    await client.connect(transport);
    return { client, transport };
  };
  const again = async (step) => {
    for (let tries = 0; ; tries += 1) {
      const transport = open();
      try {
        return await step();
      } catch (problem) {
        if (tries > 2 || !login.answer) throw problem;
        const { answer } = login;
        login.answer = undefined;
        await transport.finishAuth(job.client === 'ts1' ? answer.get('code') : answer);
      }
    }
  };
  const said = [];
  for (const tool of job.tools) {
    said.push(await again(async () => {
      const { client } = await connect();
      try {
        const result = await client.callTool({ name: tool, arguments: {} });
        return result.content.map((block) => block.text ?? '').join('');
      } finally {
        await client.close();
      }
    }));
  }
  return { said, logins: login.logins, scope: login.held?.scope };
}

for (const job of JSON.parse(await text(process.stdin))) {
  const outcome = await play(job).catch((problem) => ({ error: String(problem?.stack ?? problem) }));
  console.log(JSON.stringify({ job, ...outcome }));
}
process.exit(0);

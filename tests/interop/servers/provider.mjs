// An identity provider for the tests: oidc-provider with one user, who agrees to everything at once.
// Arguments: the folder whose node_modules holds it, the resource that tokens are for, the port. Its keys are made at each start.
import { generateKeyPairSync } from 'node:crypto';
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, resource, port] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(folder), 'here.js'));
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')).href);

const scopes = 'mcp:read mcp:write mcp:run';
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  jwks: { keys: [{ ...key, kid: `key-${Date.now()}`, use: 'sig', alg: 'RS256' }] },
  cookies: { keys: ['of the tests'] },
  scopes: ['openid', 'offline_access', ...scopes.split(' ')],
  clients: [
    { client_id: 'service', client_secret: 'of-the-service', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
    { client_id: 'gateway', client_secret: 'of-the-gateway', grant_types: [], redirect_uris: [], response_types: [] },
    {
      client_id: 'console', client_secret: 'of-the-console', grant_types: ['authorization_code'],
      redirect_uris: [`${new URL(resource).origin}/connect/callback`],
    },
    {
      client_id: 'desk', application_type: 'native', token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'], redirect_uris: ['http://127.0.0.1:9/callback'],
    },
  ],
  clientDefaults: { token_endpoint_auth_method: 'client_secret_basic' },
  // A token for the resource itself is a JWT, one for a server of the gateway called `opaque` is not.
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    dPoP: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => [],
      useGrantedResource: () => true,
      getResourceServerInfo: (_, asked) => ({
        scope: scopes,
        audience: asked,
        accessTokenFormat: asked.endsWith('/opaque') ? 'opaque' : 'jwt',
        accessTokenTTL: 600,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  pkce: { required: () => true },
  ttl: { AccessToken: 600, ClientCredentials: 600, Grant: 600, Session: 600, Interaction: 600, IdToken: 600 },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/agree/${interaction.uid}` },
});

async function agree(request, response) {
  const { params, prompt, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    await provider.interactionFinished(request, response, { login: { accountId: 'alice' } });
    return;
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(prompt.details.missingOIDCScope?.join(' ') ?? '');
  for (const [asked, missing] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
    grant.addResourceScope(asked, missing.join(' '));
  }
  const result = { consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

const serve = provider.callback();
http
  .createServer((request, response) => {
    if (request.url.startsWith('/agree/')) {
      agree(request, response).catch((fault) => response.writeHead(500).end(String(fault.stack)));
    } else {
      serve(request, response);
    }
  })
  .listen(Number(port), '127.0.0.1', () => console.log('listening'));

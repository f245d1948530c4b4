// An OpenID provider for tests: node provider.mjs PORT AUDIENCE REDIRECT
// It signs in whoever names themselves. A resource that begins with AUDIENCE is an API; what follows it chooses what its access tokens look like.
import Provider from 'oidc-provider';

const [port, audience, redirect] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const people = {
  ana: {name: 'Ana Ferreira', groups: ['finance-team', 'everybody'], org: 'acme'},
  ben: {name: 'Ben Okafor', groups: ['everybody'], org: 'elsewhere'},
};
const about = (id) => people[id] ?? {name: id, groups: []};
const kinds = {
  '': {ttl: 300}, '/other': {ttl: 300, audience: `${audience}/other`}, '/short': {ttl: 2}, '/later': {ttl: 7200, payload: {nbf: Math.floor(Date.now() / 1000) + 3600}},
  '/brief': {ttl: 2, audience: `${audience}/brief`}, '/plain': {ttl: 300, typ: 'JWT'}, '/hmac': {ttl: 300, alg: 'HS256'},
};
const kindOf = (resource) => kinds[resource.slice(audience.length)];

const provider = new Provider(issuer, {
  clients: [
    {client_id: 'jig-server', client_secret: 'a-secret-of-the-server', redirect_uris: [redirect], post_logout_redirect_uris: [new URL('/', redirect).href]},
    {
      client_id: 'jig-cli', token_endpoint_auth_method: 'none', application_type: 'native', redirect_uris: ['http://127.0.0.1/callback'],
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    },
    {client_id: 'ana', client_secret: 'a-secret-of-a-test', redirect_uris: [], response_types: [], grant_types: ['client_credentials']},
    {client_id: 'ben', client_secret: 'a-secret-of-a-test', redirect_uris: [], response_types: [], grant_types: ['client_credentials']},
  ],
  cookies: {keys: ['a key of the test']},
  claims: {openid: ['sub', 'groups', 'org'], profile: ['name']},
  conformIdTokenClaims: false,
  findAccount: (ctx, id) => ({accountId: id, claims: () => ({sub: id, ...about(id)})}),
  extraTokenClaims: (ctx, token) => about(token.accountId ?? token.clientId),
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  features: {
    devInteractions: {enabled: true},
    clientCredentials: {enabled: true},
    deviceFlow: {enabled: true},
    revocation: {enabled: true},
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => {
        const kind = kindOf(resource);
        if (!resource.startsWith(audience) || !kind) throw new Error(`no such resource: ${resource}`);
        return {
          scope: 'api', audience: kind.audience ?? audience, accessTokenTTL: kind.ttl, accessTokenFormat: 'jwt',
          jwt: {sign: kind.alg === 'HS256' ? {alg: 'HS256', key: Buffer.alloc(32, 7)} : {alg: kind.alg ?? 'RS256'}},
        };
      },
    },
  },
  formats: {
    customizers: {
      jwt: (ctx, token, jwt) => {
        const kind = kindOf(token.resourceServer?.identifier() ?? audience) ?? {};
        Object.assign(jwt.payload, kind.payload);
        if (kind.typ) jwt.header = {...jwt.header, typ: kind.typ};
        return jwt;
      },
    },
  },
});
provider.on('server_error', (ctx, error) => console.error(error));
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));

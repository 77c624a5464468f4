/** Discovery for standard clients of OpenID Connect: the document of the issuer, and its public keys. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { SCOPES } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { described, type RouteFacts } from "../http/route.ts";
import { ALGORITHM } from "./keys.ts";

interface WithRealm {
  Params: { realm?: string };
}

const DISCOVERY: RouteFacts = {
  access: "open",
  tag: "Token",
  summary: "Addresses and abilities of the token interface (OpenID Connect Discovery)",
  answer: z.looseObject({ issuer: z.string(), token_endpoint: z.string(), jwks_uri: z.string() }),
};
const JWKS: RouteFacts = {
  access: "open",
  tag: "Token",
  summary: "Public keys of the access tokens (JSON Web Key Set)",
  answer: z.object({ keys: z.array(z.looseObject({ kty: z.string(), kid: z.string() })) }),
};

/** The issuer of a token is the address of its discovery document, with the requested realm. */
export function issuerOf({ options }: HubContext, request: FastifyRequest): string {
  const base = options.publicUrl?.replace(/\/$/, "") ?? `${request.protocol}://${request.host}`;
  const realm = (request.params as { realm?: string } | undefined)?.realm;
  return realm === undefined ? base : `${base}/realms/${encodeURIComponent(realm)}`;
}

export async function discoveryRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const document = (request: FastifyRequest) => {
    const issuer = issuerOf(context, request);
    const inRealm = issuer.includes("/realms/");
    return {
      issuer,
      token_endpoint: inRealm ? `${issuer}/protocol/openid-connect/token` : `${issuer}/connect/token`,
      jwks_uri: inRealm ? `${issuer}/protocol/openid-connect/certs` : `${issuer}/.well-known/jwks.json`,
      grant_types_supported: ["password", "refresh_token"],
      response_types_supported: [],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: [ALGORITHM],
      token_endpoint_auth_methods_supported: ["client_secret_post", "client_secret_basic"],
      scopes_supported: [...SCOPES, "offline_access"],
      claims_supported: ["sub", "account", "scope", "name", "client_id"],
    };
  };
  const keys = async () => ({ keys: await context.keys.published() });
  app.get("/.well-known/openid-configuration", described(DISCOVERY), async (request) => document(request));
  app.get("/.well-known/jwks.json", described(JWKS), keys);
  app.get<WithRealm>("/realms/:realm/.well-known/openid-configuration", described(DISCOVERY), async (request) =>
    document(request),
  );
  app.get("/realms/:realm/protocol/openid-connect/certs", described(JWKS), keys);
}

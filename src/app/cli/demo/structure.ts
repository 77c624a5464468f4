/**
 * Creates the demo's sites, sources and variables in the hub, as a client of its management interface; existing ones
 * stay.
 */
import { systemClock } from "#core/clock.ts";
import { ServiceClient } from "#wire/client/index.ts";
import { API_VERSION } from "#wire/problem.ts";
import { SOURCE_TYPES } from "#wire/referentials.ts";
import type { Structure } from "./scenario.ts";

/** Source type of sources that pushes feed. */
const PUSHED_DATA = SOURCE_TYPES.find(({ name }) => name === "Pushed Data")?.id;
const TIMEOUTS = { connect: 5_000, headers: 10_000, body: 10_000, total: 30_000 };

/** `example`: the id of the first variable. `token`: of the user for whom it was built. */
export async function buildStructure(
  hubUrl: string,
  structure: Structure,
): Promise<{ readonly example: number; readonly token: string }> {
  const client = new ServiceClient(
    {
      name: "hub",
      base: hubUrl,
      push: `${hubUrl}/push`,
      token: `${hubUrl}/connect/token`,
      account: "1",
      apiVersion: API_VERSION,
      auth: "bearer",
      credentials: {
        clientId: "demo-client",
        clientSecret: "demo-client-secret",
        username: "gateway",
        password: "demo-password",
      },
      scopes: ["datahub-api", "push-data"],
    },
    { connections: 1, timeouts: TIMEOUTS, clock: systemClock },
  );
  const signal = AbortSignal.timeout(TIMEOUTS.total);
  try {
    const { value: token } = await client.token(signal);
    const existing = await client.getSites({}, signal);
    if (existing.items.length === 0) for (const site of structure.sites) await buildSite(client, site, signal);
    const first = structure.sites[0]?.sources[0]?.serialNumber ?? "";
    const source = (await client.getSources({ SerialNumber: [first] }, signal)).items[0];
    const variables = await client.getVariables({ SourceId: [source?.id ?? 0] }, signal);
    return { example: variables.items[0]?.id ?? 1, token };
  } finally {
    await client.close();
  }
}

async function buildSite(client: ServiceClient, site: Structure["sites"][number], signal: AbortSignal): Promise<void> {
  const { sources, ...siteBody } = site;
  const siteId = await client.postSite(siteBody, signal);
  for (const { variables, ...fields } of sources) {
    const body = { ...fields, siteId, sourceTypeId: PUSHED_DATA, timeZoneId: site.timeZoneId };
    const source = await client.postSource(withoutUndefined(body), signal);
    for (const variable of variables)
      await client.postVariable(withoutUndefined({ ...variable, sourceId: source.id }), signal);
  }
}

type Defined<Fields> = { [Key in keyof Fields]: Exclude<Fields[Key], undefined> };

function withoutUndefined<Fields extends object>(fields: Fields): Defined<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<Fields>;
}

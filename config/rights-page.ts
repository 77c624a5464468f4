/** `docs/hub-rights.md`: which role may call which route, from the access rules that the guard enforces. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog as log } from "#core/log.ts";
import { ACCESS, type HubRoute, type RouteFacts } from "#hub/http/route.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { rolesWith } from "#hub/token/rights.ts";
import { ROLE_NAMES, type RoleName } from "#wire/index.ts";

const INTRO = `# Rights at the hub

Which role may call which route. The roles of a user belong to a membership: they count in the account of the token
alone. \`Admin\` is of the operator, and counts in every account. A user without a role may do what \`User\` may. Calls
without the role are answered by 403, those without credentials by 401.

Beside this table: no user gives a role above the own one, nor changes a user of a higher rank (User, Datapusher,
Manager, Admin); \`User\` and \`Datapusher\` see only themselves among users; and what belongs to the person (names,
address, password, deactivation) is changed by a Manager only where the user belongs to no other account
([People at the hub](hub/people.md)).
`;

/** The roles that may call the route; all where it is open. */
export function rolesOf({ access }: RouteFacts): readonly RoleName[] {
  const rule = ACCESS[access];
  return rule === null || rule.right === null ? ROLE_NAMES : rolesWith(rule.right);
}

export function rightsPage(routes: readonly HubRoute[]): string {
  const shown = routes.filter(
    ({ method, facts }) => facts.hidden !== true && facts.status !== 501 && method !== "HEAD",
  );
  const sections = [...Map.groupBy(shown, ({ facts }) => facts.tag)].map(([tag, own]) => {
    const rows = own.map(({ method, url, facts }) => {
      const roles = rolesOf(facts);
      const cells = ROLE_NAMES.map((role) => (roles.includes(role) ? "yes" : "–"));
      const call = `\`${method} ${url.replace(/:(\w+)/g, "{$1}")}\``;
      return `| ${call} | ${facts.access === "open" ? "anyone" : ""} | ${cells.join(" | ")} |`;
    });
    const head = [
      `| call | without a token | ${ROLE_NAMES.join(" | ")} |`,
      `|---|---|${"---|".repeat(ROLE_NAMES.length)}`,
    ];
    return [`## ${tag}`, "", ...head, ...rows.sort(), ""].join("\n");
  });
  return [INTRO, ...sections].join("\n");
}

/** The routes of a hub as it starts without further settings. */
export async function routesOfHub(): Promise<readonly HubRoute[]> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-routes-"));
  const options = hubOptions.parse({
    listen: "127.0.0.1:0",
    store: { kind: "sqlite", path: join(folder, "hub.sqlite") },
    files: { path: join(folder, "files") },
  });
  const hub = await startHub(options, { log });
  try {
    return hub.routes;
  } finally {
    await hub.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

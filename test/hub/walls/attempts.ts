/** Requests to every route of a hub by which an account asks for what another one has. */
import { z } from "zod";
import type { HubRoute } from "#hub/http/route.ts";
import { multipartOf } from "../fixture.ts";
import { FIRST, NAMED, TOKEN } from "./held.ts";

export interface Attempt {
  readonly route: HubRoute;
  readonly path: string;
  readonly query?: Record<string, string>;
  readonly body?: unknown;
}

/** A user of account 1 alone. */
const PERSON = 4;
const NOWHERE = { id: 987_654, text: "nowhere", token: TOKEN.replaceAll("1", "2") };

/** What account 1 has for each parameter of an address, by the part before it and its name. */
const IN_ADDRESS: Readonly<Record<string, string | number>> = {
  ":formName/:groupName": NAMED.text,
  ":groupName/:fieldName": NAMED.text,
  "alarms/:id": FIRST,
  "attributes/:formName": NAMED.text,
  "claims/:claimType": NAMED.text,
  "calculations/:id": FIRST,
  "explorer/:file": "x.js",
  "fileTrigger/:id": FIRST,
  "form/:id": FIRST,
  "generic/:guid": TOKEN,
  "groups/:id": FIRST,
  "oidc/:provider": NAMED.text,
  "invitations/:id": FIRST,
  "operations/*": encodeURIComponent(NAMED.operation),
  "realms/:realm": NAMED.text,
  "sites/:id": FIRST,
  "sites/:siteId": FIRST,
  "slices/:sliceId": FIRST,
  "source/:sourceId": FIRST,
  "sources/:id": FIRST,
  "sources/:sourceId": FIRST,
  "static/*": "index.html",
  "storage/:id": FIRST,
  "subscriptions/:id": FIRST,
  "template/:id": FIRST,
  "tokens/:id": FIRST,
  "users/:id": PERSON,
  "variables/:id": FIRST,
  "view/:id": FIRST,
  "views/:id": FIRST,
};

/** Texts of queries. */
const IN_QUERY: Readonly<Record<string, string>> = {
  AsOf: "2026-04-01T00:00:00Z",
  "BusinessKeys.Values": String(PERSON),
  Date: "2026-03-01T00:00:00Z",
  CustomFilter: "Id > 0",
  Delimiter: ";",
  DisplayLevel: "Verbose",
  Ean: NAMED.ean,
  Eans: NAMED.ean,
  Encoding: "utf-8",
  Entry: NAMED.text,
  File: `${NAMED.text}.csv`,
  FileName: NAMED.text,
  Filename: NAMED.text,
  FlatLineHours: "24",
  From: "2026-01-01T00:00:00Z",
  FromDateUtc: "2026-01-01T00:00:00Z",
  MaxScore: "100",
  MeterNumber: NAMED.meter,
  MeterNumbers: NAMED.meter,
  Name: NAMED.text,
  Names: NAMED.text,
  OdmSqlFilter: "Id > 0 or Site.Id > 0 or Variable.Id > 0",
  OutlierDeviations: "8",
  SearchText: NAMED.text,
  SerialNumber: NAMED.serial,
  SerialNumbers: NAMED.serial,
  Since: "2026-01-01T00:00:00Z",
  State: "Active",
  States: "Active",
  Tag: NAMED.text,
  Tags: NAMED.text,
  TimeZoneId: "Europe/Paris",
  To: "2027-01-01T00:00:00Z",
  ToDateUtc: "2027-01-01T00:00:00Z",
  Token: TOKEN,
  UserId: String(PERSON),
  VersionSince: "2026-01-01T00:00:00Z",
  VersionTag: NAMED.text,
  from: "2026-01-01T00:00:00Z",
  name: NAMED.text,
  operationId: NAMED.operation,
  to: "2027-01-01T00:00:00Z",
  webhookUrl: "https://gateway.example.org/outcome",
};

const SLICE = { FromDate: "2026-05-01T00:00:00Z", Value: 1 };
/** Bodies of routes without an example. */
const BODIES: Readonly<Record<string, unknown>> = {
  "POST /alarms/:id/acknowledge": { comment: NAMED.text },
  "POST /alarms/:id/comments": { text: NAMED.text },
  "POST /connect/token": {},
  "POST /groups/:id/sites": [FIRST],
  "POST /push/api/generic/:guid": {},
  "POST /realms/:realm/protocol/openid-connect/token": {},
  "POST /sites/:id/attributes/:formName/:groupName/:fieldName/slices": SLICE,
  "POST /sources/:id/attributes/:formName/:groupName/:fieldName/slices": SLICE,
  "POST /storage": {},
  "PUT /alarms/template/:id": { name: "t", selection: { variableIds: [FIRST] }, condition: { kind: "Above", set: 1 } },
  "PUT /alarms/view/:id": { name: "v", filter: { templateIds: [FIRST] } },
  "PUT /sites/:id/attributes/:formName/:groupName/:fieldName/slices/:sliceId": SLICE,
  "PUT /sources/:id/attributes/:formName/:groupName/:fieldName/slices/:sliceId": SLICE,
};

/** Without a selection there is nothing to see. */
const BY_ID = { "BusinessKeys.Name": "Id", "BusinessKeys.Values": String(PERSON) };
const SELECTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "/account/users": BY_ID,
  "/data": { VariableIds: String(FIRST), SourceIds: String(FIRST) },
  "/data/export": { VariableIds: String(FIRST), Format: "csv" },
  "/data/origin": { VariableId: String(FIRST), Date: "2026-03-01T00:00:00Z" },
  "/dataLossDetection": { VariableIds: String(FIRST) },
  "/dataQuality": { VariableIds: String(FIRST) },
  "/user/users": BY_ID,
};

const keyOf = ({ method, url }: HubRoute) => `${method} ${url}`;

/** One request without parameters, one for each parameter of the query; with a body where the route takes one. */
export function attemptsOf(route: HubRoute): Attempt[] {
  const { facts, url } = route;
  const path = pathOf(route);
  const withBody = facts.body === undefined ? {} : { body: bodyOf(route) };
  const queries = parametersOf(route).map(([name, value]) => {
    const selection = SELECTIONS[url] ?? {};
    return { ...selection, [name]: value };
  });
  return [{ route, path, ...withBody }, ...queries.map((query) => ({ route, path, query, ...withBody }))];
}

function pathOf(route: HubRoute): string {
  const parts = route.url.split("/");
  const filled = parts.map((part, at) => {
    if (!/^[:*]/.test(part)) return part;
    // What the hub does not have is the same for everyone.
    if (route.facts.status === 501) return String(FIRST);
    const key = `${parts[at - 1]}/${part}`;
    const value = IN_ADDRESS[key];
    if (value === undefined) throw missing(route, `what account 1 has for ${key}`, "IN_ADDRESS");
    return value;
  });
  return filled.join("/");
}

function bodyOf(route: HubRoute): unknown {
  const body = route.facts.example?.body ?? BODIES[keyOf(route)];
  if (body === undefined) throw missing(route, "an example of its body", "BODIES");
  return body;
}

interface JsonSchema {
  readonly type?: string;
  readonly enum?: readonly (string | number)[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
}

function parametersOf(route: HubRoute): (readonly [name: string, value: string])[] {
  const { query } = route.facts;
  if (query === undefined) return [];
  const schema = z.toJSONSchema(query, { io: "input", unrepresentable: "any" }) as JsonSchema;
  return Object.entries(schema.properties ?? {}).map(([name, { items, ...own }]) => {
    const { type, enum: words } = items ?? own;
    if (words !== undefined) return [name, String(words[0])];
    if (type === "boolean") return [name, "true"];
    const value = IN_QUERY[name] ?? (type === "integer" ? String(FIRST) : undefined);
    if (value === undefined) throw missing(route, `a text for the parameter ${name}`, "IN_QUERY");
    return [name, value];
  });
}

function missing(route: HubRoute, what: string, table: string): Error {
  return new Error(`the test of the walls needs ${what} of ${keyOf(route)}: test/hub/walls/attempts.ts, ${table}`);
}

/** Of things of an account: types, units and the like are the same for all. */
const IDS = /"((?![A-Za-z.]*(?:Type|type|Unit|unit|Usage|usage)Ids?")[A-Za-z.]*[Ii]ds?)":(\[?)"?1"?(\]?)/g;

/** The same with what nobody has. */
export function elsewhere({ route, path, query, body }: Attempt): Attempt {
  const text = nowhereWords(
    JSON.stringify([path, query ?? null, body ?? null])
      .replaceAll(TOKEN, NOWHERE.token)
      .replaceAll(encodeURIComponent(NAMED.operation), NOWHERE.text)
      .replaceAll(
        IDS,
        (_, name, open, close) =>
          `"${name}":${open}${query?.[name] === undefined ? NOWHERE.id : `"${NOWHERE.id}"`}${close}`,
      )
      .replaceAll(`"UserId":"${PERSON}"`, `"UserId":"${NOWHERE.id}"`)
      .replaceAll(`"BusinessKeys.Values":"${PERSON}"`, `"BusinessKeys.Values":"${NOWHERE.id}"`)
      .replaceAll(`/users/${PERSON}`, `/users/${NOWHERE.id}`)
      .replaceAll(/\[1\]/g, `[${NOWHERE.id}]`)
      .replaceAll(/\/1(?=[/"])/g, `/${NOWHERE.id}`),
  );
  const [otherPath, otherQuery, otherBody] = JSON.parse(text);
  return {
    route,
    path: otherPath,
    ...(otherQuery === null ? {} : { query: otherQuery }),
    ...(otherBody === null ? {} : { body: otherBody }),
  };
}

/** The texts of account 1 that requests name, replaced by one of nobody. */
export function nowhereWords(text: string): string {
  return text.replaceAll(new RegExp(Object.values(NAMED).join("|"), "g"), NOWHERE.text);
}

/** What `fetch` sends of an attempt. */
export function sentOf({ route, body }: Attempt): {
  readonly raw?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
} {
  const type = route.facts.bodyType;
  if (body === undefined) return {};
  if (type === "multipart/form-data") return multipartOf("a file of the other account");
  return { raw: JSON.stringify(body), headers: { "content-type": type ?? "application/json" } };
}

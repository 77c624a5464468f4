/** The document of the interface (OpenAPI 3.1), derived from the routes and their schemas. */
import { z } from "zod";
import { TITLES } from "#wire/http-problem.ts";
import {
  API_VERSION,
  dataRow,
  group,
  problem,
  SCOPES,
  shownFileTrigger,
  site,
  source,
  storedFile,
  tokenError,
  tokenResponse,
  variable,
  view,
  webhookBody,
} from "#wire/index.ts";
import type { AccessRule } from "../token/guard.ts";
import { ACCESS, type HubRoute, type RouteFacts } from "./route.ts";

type Json = Readonly<Record<string, unknown>>;

/** By the name in lower case. */
const WORDS: Readonly<Record<string, string>> = {
  // In addresses.
  realm: "Any name; the tokens are the same.",
  siteid: "Id of the site.",
  formname: "Name of the form.",
  groupname: "Name of the group of the form.",
  fieldname: "Name of the field.",
  sliceid: "Id of the slice.",
  claimtype: "Type of the claim.",
  email: "Address for messages, unique in the hub.",
  firstname: "First name.",
  lastname: "Last name.",
  businessid: "Identifier that the account gives to the user.",
  roles: "Names of the roles of the user in the account.",
  guid: "The `token` of the file trigger.",
  rest: "Anything: this hub does not have the resource.",
  // Alarms.
  templateids: "Templates of alarms.",
  alarmids: "Alarms.",
  severities: "Severities of templates.",
  kinds: "Kinds of conditions.",
  condition: "When an alarm is present.",
  notifications: "Who is notified when an alarm changes, beside the readers of events.",
  template: "The template, as POST /alarms/template takes it.",
  webhooks: "Receivers of a signed POST of each change.",
  comment: "A comment, kept with the alarm.",
  // Tokens.
  grant_type: "How the caller signs in.",
  client_id: "The client, as the hub was configured with it.",
  client_secret: "Its secret.",
  username: "Name of the user.",
  password: "Password of the user.",
  refresh_token: "The refresh token of an earlier answer.",
  scope: "Scopes of the token, with spaces between them.",
  account: "Id of the account that the token is for.",
  acr_values: "`accountId:<id>`, the older form of `account`.",
  // Lists.
  id: "Id of the entity.",
  ids: "Several ids.",
  displaylevel: "How much of each entity or row is shown.",
  customfilter: "Expression that entities have to fulfil.",
  odmsqlfilter: "Selection of sources.",
  viewid: "Id of a stored view, whose filter is used.",
  "paging.pagenumber": "Page, from 0.",
  "paging.itemsperpage": "Entries of one page.",
  pagenumber: "Page, from 0.",
  itemsperpage: "Entries of one page.",
  includeitemscount: "Adds the header `x-total-count`, the count over all pages.",
  siteids: "Ids of several sites.",
  state: "Only entities in this state.",
  states: "Only entities in one of these states.",
  tags: "Labels.",
  tag: "Label.",
  name: "Name that people read.",
  names: "Several names.",
  eans: "Several EANs.",
  serialnumbers: "Several serial numbers.",
  meternumbers: "Several meter numbers.",
  sourceids: "Ids of several sources.",
  variabletypeids: "Ids of several variable types.",
  variableids: "Ids of several variables.",
  "calculatedfilter.impactingvariableid": "Only variables that are calculated from this one.",
  ingestiontype: "How the file comes.",
  filename: "Name of the file.",
  clouditemtypeid: "Kind of file.",
  file: "The content of the file.",
  // Sites, sources, variables.
  typeid: "Type of the site, an id of `GET /sitetypes`.",
  timezoneid: "IANA name of the time zone.",
  street: "Street and number.",
  postalcode: "Postal code.",
  city: "City.",
  country: "Country.",
  clientdata: "Data of the client's own, which the hub keeps as they are, and values of forms.",
  serialnumber: "Serial number, by which a push can name the source.",
  ean: "EAN, by which a push can name the source.",
  meternumber: "Meter number, by which a push can name the source.",
  sourcetypeid: "Type of the source, an id of `GET /sourceTypes`.",
  energytypeid: "Type of energy, an id of `GET /energyTypes`.",
  energyusageid: "Usage of the energy, an id of `GET /energyUsages`.",
  gatewaytypeid: "Type of the gateway, an id of `GET /gatewayTypes`.",
  description: "Text for people.",
  localisation: "Where the source is, for people.",
  meteraddress: "Address of the meter.",
  sourceid: "Id of the source.",
  variabletypeid: "Type of the variable, an id of `GET /variableTypes`.",
  unitid: "Unit of the values, an id of `GET /units`.",
  granularity: "Length of the periods, in the time base.",
  granularitytimebase: "Time base of the granularity, an id of `GET /timePeriods`.",
  quantitytype: "Kind of the quantity, an id of `GET /quantityTypes`.",
  aggregate: "How values of a period become one.",
  mappingconfig: "Key by which a push names the variable beside an identifier of its source.",
  isversioned: "Whether earlier versions of points are kept.",
  versionsmax: "Versions kept for a point.",
  divider: "Stored and shown; the hub divides nothing by it.",
  calculated: "Formulas that calculate the points; a plain variable has none.",
  // Changes by JSON Patch.
  op: "Operation of the JSON Patch.",
  path: "What it changes.",
  // Forms and patterns of names.
  groups: "Groups of the form.",
  displayheader: "Whether the name of the group is shown.",
  fields: "Fields of the group.",
  required: "Whether a value has to be given.",
  filtertype: "How the name of a file and the value are compared.",
  // Data.
  variableid: "Id of the variable.",
  accountid: "Id of the account.",
  from: "Beginning of the period, included.",
  to: "End of the period, not included.",
  fromdateutc: "Beginning of the period, included.",
  todateutc: "End of the period, not included.",
  includetoboundary: "Includes the end of the period.",
  usereportingtimezone: "Uses the time zone of the site.",
  aggregation: "How the values of a period become one.",
  aggregations: "Several aggregations side by side.",
  targetunits: "Units into which the values are converted.",
  unittransformation: "Another name of TargetUnits.",
  pagingorder: "Order of the rows.",
  versiontag: "Only versions with this label.",
  allversions: "Shows every version of a point.",
  asof: "Shows what was valid at this moment.",
  versionsince: "Only points whose latest version was stored at this instant or later.",
  whatif: "Only reports what would be removed.",
  // Pushes.
  operationid: "Id of the push, by which its outcome is asked for.",
  operationtimeoutsec: "Seconds that applying the push may take.",
  webhookurl: "Address to which the outcome is sent.",
  sourceserialnumber: "Serial number of the source.",
  sourceean: "EAN of the source.",
  sourcename: "Name of the source.",
  version: "Label of the version.",
  data: "The readings.",
  date: "Moment of the reading (ISO 8601).",
  value: "The value.",
};

/** Schemas that are shown by their names. */
const named = z.registry<{ id: string }>();
for (const [id, schema] of Object.entries({
  Site: site,
  Source: source,
  Variable: variable,
  View: view,
  Group: group,
  FileTrigger: shownFileTrigger,
  StoredFile: storedFile,
  DataRow: dataRow,
  Problem: problem,
  TokenResponse: tokenResponse,
  TokenError: tokenError,
  Outcome: webhookBody,
}))
  named.add(schema, { id });

/** The names of schemas, and beside them the descriptions that the schemas carry. */
const documented = Object.assign(z.registry<{ id?: string; description?: string }>(), {
  get: (schema: z.core.$ZodType) => ({ ...z.globalRegistry.get(schema), ...named.get(schema) }),
});

const STATUS_WORDS: Readonly<Record<number, string>> = {
  200: "Done.",
  204: "Done; the answer has no body.",
  400: "The request is not valid; the same again never is. `errors` names each field.",
  401: "No valid token, or one without the scope.",
  403: "The user lacks the right.",
  404: "No such thing in the account of the token.",
  409: "The stored data conflicts with the request.",
  410: "No longer does anything; `detail` says what does.",
  413: "The body is too large.",
  429: "Too many requests; `Retry-After` says how many seconds to wait.",
  501: "Not supported by this hub; `detail` says why.",
};

export function openApi(routes: readonly HubRoute[], { url }: { readonly url: string }): Json {
  const schemas: Record<string, unknown> = {};
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    if (route.facts.hidden === true) continue;
    const path = templateOf(route);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) };
  }
  for (const schema of [problem, tokenError, webhookBody]) schemaOf(schema, schemas);
  return {
    openapi: "3.1.0",
    info: {
      title: "Headgate hub",
      version: API_VERSION,
      description:
        "Measurement data of accounts: sites, sources, variables and their points. Names of query " +
        "parameters and body fields are matched without regard to case. Unknown body fields are ignored and " +
        "named in the header X-Headgate-Warning; unknown parameters of lists and removals are refused. Query " +
        "parameters are also taken behind the prefixes `filter.`, `parameters.`, `options.` and " +
        "`<resource>Filter.`, in singular and plural (`siteIds` on /sites for `Ids`), `EanNumber` for `Ean`, and " +
        "`hardDelete` for `WithData`. Enumerations take numbers and names.",
    },
    servers: [{ url }],
    tags: [...new Set(routes.filter(shown).map(({ facts }) => facts.tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas,
      securitySchemes: {
        token: {
          type: "oauth2",
          flows: {
            password: {
              tokenUrl: `${url === "/" ? "" : url}/connect/token`,
              scopes: Object.fromEntries(SCOPES.map((scope) => [scope, SCOPE_WORDS[scope]])),
            },
          },
        },
        basic: { type: "http", scheme: "basic" },
      },
      parameters: {
        ApiVersion: {
          name: "Api-Version",
          in: "header",
          schema: { type: "string", enum: [API_VERSION] },
          description: "Without it the newest version answers.",
        },
      },
    },
  };
}

const SCOPE_WORDS: Readonly<Record<(typeof SCOPES)[number], string>> = {
  "datahub-api": "reading data, reading and changing structure",
  "push-data": "pushing data",
  "dashboards-api": "dashboards (not part of this hub)",
  "geozones-api": "geozones (not part of this hub)",
  "odm-api": "open data model (not part of this hub)",
};

const shown = ({ facts }: HubRoute): boolean => facts.hidden !== true;

/** `/sources/:id` as `/sources/{id}`; the wildcard parameter is named `rest`. */
function templateOf({ url, facts }: HubRoute): string {
  return url.replace(/:(\w+)/g, "{$1}").replace(/\*$/, `{${facts.rest ?? "rest"}}`);
}

function camelCaseOf(template: string): string {
  return template.replace(/[^A-Za-z0-9]+(\w?)/g, (_, next: string) => next.toUpperCase());
}

function operationOf(route: HubRoute, schemas: Record<string, unknown>): Json {
  const { method, url, facts } = route;
  const template = templateOf(route);
  const rule = ACCESS[facts.access];
  const status = facts.status ?? 200;
  return {
    operationId: method.toLowerCase() + camelCaseOf(template),
    tags: [facts.tag],
    summary: facts.summary,
    ...(facts.description === undefined ? {} : { description: facts.description }),
    parameters: parametersOf(template, facts, rule, schemas),
    ...(facts.body === undefined ? {} : { requestBody: bodyOf(facts, schemas) }),
    responses: {
      ...(status >= 400 ? {} : { [status]: answerOf(facts, status, schemas) }),
      ...problemsOf(facts, url),
    },
    security: rule === null ? [] : securityOf(rule),
  };
}

/** One entry for each scope: any of them is enough. */
function securityOf({ scopes, basic }: AccessRule): Json[] {
  return [...scopes.map((scope) => ({ token: [scope] })), ...(basic ? [{ basic: [] }] : [])];
}

function parametersOf(
  template: string,
  { query, example }: RouteFacts,
  rule: AccessRule | null,
  schemas: Record<string, unknown>,
): Json[] {
  const inPath = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    description: wordsOfParameter(name),
    schema: /id$/i.test(name) && name !== "operationId" ? { type: "integer", minimum: 1 } : { type: "string" },
  }));
  const object = query === undefined ? {} : (schemaOf(query, schemas) as QuerySchema);
  const inQuery = Object.entries(object.properties ?? {}).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    required: object.required?.includes(name) === true,
    ...(description === undefined ? {} : { description }),
    schema,
    ...(schema["type"] === "array" ? { style: "form", explode: true } : {}),
    ...(example?.query?.[name] === undefined ? {} : { example: example.query[name] }),
  }));
  const version = rule === null ? [] : [{ $ref: "#/components/parameters/ApiVersion" }];
  return [...inPath, ...inQuery, ...version];
}

interface QuerySchema {
  readonly properties?: Readonly<Record<string, { readonly description?: string } & Json>>;
  readonly required?: readonly string[];
}

function bodyOf({ body, bodyType = "application/json", example }: RouteFacts, schemas: Record<string, unknown>) {
  const media = {
    schema: body === undefined ? {} : schemaOf(body, schemas),
    ...(example?.body === undefined ? {} : { example: example.body }),
  };
  return { required: true, content: { [bodyType]: media } };
}

function answerOf(
  { answer, answerType = "application/json" }: RouteFacts,
  status: number,
  schemas: Record<string, unknown>,
) {
  const description = STATUS_WORDS[status];
  if (status === 204) return { description };
  const schema = answer === undefined ? {} : schemaOf(answer, schemas);
  return { description, content: { [answerType]: { schema } } };
}

function problemsOf({ access, tag, status = 200, query, body }: RouteFacts, url: string): Json {
  const rule = ACCESS[access];
  const statuses = [
    ...(query === undefined && body === undefined ? [] : [400]),
    ...(rule === null ? [] : [401]),
    ...(rule !== null && ![null, "read", "own"].includes(rule.right) ? [403] : []),
    ...(url.includes(":") ? [404] : []),
    ...(body === undefined ? [] : [413]),
    429,
    ...(status >= 400 ? [status] : []),
  ];
  const [type, schema, example] =
    tag === "Token" && body !== undefined
      ? (["application/json", "TokenError", () => TOKEN_EXAMPLE] as const)
      : (["application/problem+json", "Problem", problemExample] as const);
  return Object.fromEntries(
    statuses.map((one) => [
      one,
      {
        description: STATUS_WORDS[one],
        content: { [type]: { schema: { $ref: `#/components/schemas/${schema}` }, example: example(one) } },
      },
    ]),
  );
}

const TOKEN_EXAMPLE = { error: "invalid_grant", error_description: "wrong username or password" };

function problemExample(status: number): z.infer<typeof problem> {
  const facts = { type: "about:blank", title: TITLES[status] ?? "Error", status };
  if (status !== 400) return { ...facts, detail: STATUS_WORDS[status] ?? "" };
  const message = "9999 is no id of GET /units";
  return {
    ...facts,
    code: "invalid-request",
    detail: `unitId: ${message}`,
    errors: [{ path: "unitId", message }],
  };
}

/** Integers are limited to the safe range of doubles; showing these bounds on each would only distract. */
function withoutSafeBounds(name: string, value: unknown): unknown {
  const isBound = name === "minimum" || name === "maximum";
  return isBound && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER ? undefined : value;
}

function derive(schema: z.ZodType): object {
  const { $schema: _, ...own } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    metadata: documented,
    reused: "inline",
  });
  return withWords(own) as object;
}

/** Routes share schemas, and hubs of one process share routes. */
const derived = new WeakMap<z.ZodType, object>();

/** Named schemas go to the components and are referenced. */
function schemaOf(schema: z.ZodType, schemas: Record<string, unknown>): Json {
  const own = derived.get(schema) ?? derive(schema);
  derived.set(schema, own);
  const id = named.get(schema)?.id;
  const { $defs = {}, ...rest } = JSON.parse(
    JSON.stringify(own).replaceAll('"#/$defs/', '"#/components/schemas/'),
    withoutSafeBounds,
  ) as { readonly $defs?: Readonly<Record<string, Json>> } & Json;
  for (const [name, { id: __, ...definition }] of Object.entries($defs)) schemas[name] = definition;
  if (id === undefined) return rest;
  const { id: ___, ...definition } = rest;
  schemas[id] = definition;
  return { $ref: `#/components/schemas/${id}` };
}

// Descriptions of parameters and fields by their names, where their schema says nothing more precise.

function wordsOfParameter(name: string): string | undefined {
  return WORDS[name.toLowerCase()];
}

/** The JSON Schema, with words for the properties that have none of their own, at every depth. */
function withWords(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withWords);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, inner]) => {
      if (["default", "example", "examples", "enum", "const"].includes(key)) return [key, inner];
      return [key, key === "properties" ? propertiesOf(inner as Json) : withWords(inner)];
    }),
  );
}

function propertiesOf(properties: Json): Json {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const description = wordsOfParameter(name);
      return [name, { ...(description === undefined ? {} : { description }), ...(withWords(property) as Json) }];
    }),
  );
}

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { HubRoute } from "#hub/http/route.ts";
import { addressOf, createChain, type Query, startTestHub, type TestHub } from "./fixture.ts";

type Json = Readonly<Record<string, unknown>>;
interface Operation {
  readonly operationId: string;
  readonly parameters: readonly (Json & { name?: string; in?: string; schema?: Json; example?: unknown })[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Json; example?: unknown }>> };
  readonly responses: Readonly<Record<string, { description?: string }>>;
  readonly security: readonly Json[];
  readonly tags: readonly string[];
}

/** The user `plain` of the fixture. */
const PLAIN = 4;
let hub: TestHub;
let document: Json & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Json>>; readonly securitySchemes: Json };
};
beforeAll(async () => {
  hub = await startTestHub();
  document = await hub.get("/openapi.json", undefined, { authorization: "" });
});
afterAll(() => hub.close());

const shown = () => hub.routes.filter(({ facts }) => facts.hidden !== true);
const template = ({ url, facts }: HubRoute) =>
  url.replace(/:(\w+)/g, "{$1}").replace(/\*$/, `{${facts.rest ?? "rest"}}`);
const operations = () =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );

test("each resource that responds with 501 has a line of its own in docs/hub/interface.md", () => {
  const choices = readFileSync(new URL("../../docs/hub/interface.md", import.meta.url), "utf8");
  const [, lines = ""] = choices.split("## Resources that the hub does not have");
  const missing = shown().filter(({ facts }) => facts.tag === "Not yet");
  const resources = [...new Set(missing.map(({ url }) => url.split("/")[1] ?? ""))];
  expect(resources).toContain("odm");
  expect(resources.filter((name) => !new RegExp(`^- .*/${name}\\b`, "m").test(lines))).toEqual([]);
});

describe("/openapi.json", () => {
  test("names every route of the hub, and no other", () => {
    const written = operations().map(({ path, method }) => `${method.toUpperCase()} ${path}`);
    expect(written.sort()).toEqual(
      shown()
        .map((route) => `${route.method} ${template(route)}`)
        .sort(),
    );
  });

  test("has the shape of OpenAPI 3.1: info, paths, unique operations, answers with descriptions", () => {
    expect(document).toMatchObject({
      openapi: "3.1.0",
      info: { title: expect.any(String), version: "1.7" },
      servers: [{ url: "/" }],
    });
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    for (const { path, operation } of operations()) {
      expect(path).toMatch(/^\//);
      const answers = Object.entries(operation.responses);
      expect(answers.length).toBeGreaterThan(0);
      for (const [status, { description }] of answers) {
        expect(status).toMatch(/^[1-5]\d\d$/);
        expect(description).toEqual(expect.any(String));
      }
    }
  });

  test("declares each parameter of a path once, as required, and each of a query with a schema", () => {
    for (const { path, operation } of operations()) {
      const inPath = operation.parameters.filter((parameter) => parameter.in === "path");
      expect(inPath.every((parameter) => parameter["required"] === true)).toBe(true);
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(inPath.map(({ name }) => name)).toEqual(names);
      for (const parameter of operation.parameters)
        if (parameter["$ref"] === undefined) expect(parameter.schema).toEqual(expect.any(Object));
    }
  });

  test("describes every parameter, and every field of a body", () => {
    const missing: string[] = [];
    const visit = (schema: unknown, at: string): void => {
      if (typeof schema !== "object" || schema === null) return;
      const { properties = {}, items, anyOf = [], oneOf = [] } = schema as Json & { anyOf?: Json[]; oneOf?: Json[] };
      for (const [name, field] of Object.entries(properties as Readonly<Record<string, Json>>)) {
        if (typeof field["description"] !== "string") missing.push(`${at}.${name}`);
        visit(field, `${at}.${name}`);
      }
      for (const inner of [items, ...anyOf, ...oneOf]) visit(inner, at);
    };
    for (const { path, method, operation } of operations()) {
      for (const { name, ...parameter } of operation.parameters)
        if (name !== undefined && typeof parameter["description"] !== "string")
          missing.push(`${method} ${path} ?${name}`);
      for (const { schema } of Object.values(operation.requestBody?.content ?? {})) visit(schema, `${method} ${path}`);
    }
    expect(missing).toEqual([]);
    // A description of a schema comes before the words that a name has everywhere.
    const state = document.paths["/storage"]?.["get"]?.parameters.find(({ name }) => name === "State");
    expect(state?.["description"]).toBe("What became of the files.");
  });

  test("refers only to its own parts", () => {
    const text = JSON.stringify(document);
    for (const [, ref = ""] of text.matchAll(/"\$ref":"([^"]+)"/g)) {
      const found = ref
        .replace(/^#\//, "")
        .split("/")
        .reduce<unknown>((at, step) => (at as Json | undefined)?.[step], document);
      expect(found, ref).toBeDefined();
    }
    expect(text).not.toContain(String(Number.MAX_SAFE_INTEGER));
    expect(text).not.toMatch(/https?:\/\//);
    const schemes = Object.keys(document.components.securitySchemes);
    for (const { operation } of operations())
      for (const name of operation.security.flatMap((entry) => Object.keys(entry))) expect(schemes).toContain(name);
  });

  test("has schemas that accept the examples", () => {
    const whole = (schema: Json) => z.fromJSONSchema({ ...schema, components: document.components } as never);
    let examples = 0;
    for (const { operation } of operations())
      for (const { schema, example } of [
        ...Object.values(operation.requestBody?.content ?? {}),
        ...operation.parameters.map((one) => ({ schema: one.schema ?? {}, example: one.example })),
      ]) {
        if (example === undefined) continue;
        examples += 1;
        expect(whole(schema).safeParse(example).success, JSON.stringify({ schema, example })).toBe(true);
      }
    expect(examples).toBeGreaterThan(20);
  });
});

test("every example works as given", async () => {
  await createChain(hub);
  expect(await hub.post("/fileTrigger", { mapping: "acme", ingestionType: "SendViaHttp" })).toBe(1);
  expect(await hub.post("/form", { name: "First" })).toMatchObject({ id: "1" });
  const order = ["GET", "POST", "PUT", "PATCH", "DELETE"];
  const routes = shown()
    .filter(({ facts }) => facts.example !== undefined)
    .sort((one, other) => order.indexOf(one.method) - order.indexOf(other.method));
  for (const route of routes) {
    // What removes takes a chain of its own with it.
    const { siteId, sourceId, variableIds } =
      route.method === "DELETE" && route.url !== "/data"
        ? await createChain(hub)
        : { siteId: 1, sourceId: 1, variableIds: [1] };
    const ids = { site: siteId, source: sourceId, variable: variableIds[0] ?? 0, form: 1, events: 1, user: PLAIN };
    const path = addressOf(route, ids);
    const { query, body } = route.facts.example ?? {};
    const answer = await hub.call(route.method, path, {
      ...(query === undefined ? {} : { query: query as Query }),
      ...(body === undefined ? {} : { body }),
    });
    const words = `${route.method} ${path} ${JSON.stringify(answer.body)}`;
    expect([200, 204], words).toContain(answer.status);
    if (route.facts.answer !== undefined)
      expect(route.facts.answer.safeParse(answer.body).error, words).toBe(undefined);
  }
});

describe("the page of the interface", () => {
  test("is where the bare address of the hub leads to, without a token", async () => {
    const answer = await fetch(hub.url());
    expect(answer).toMatchObject({ status: 200, url: `${hub.url()}/docs/` });
    expect(await answer.text()).toContain("<title>Headgate hub</title>");
  });

  test("is served without a token, and loads nothing from other addresses", async () => {
    const page = await fetch(`${hub.url()}/docs/`);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'self'");
    const html = await page.text();
    const files = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, file = ""]) => file);
    expect(files.length).toBeGreaterThan(4);
    for (const file of files) {
      expect(file).toMatch(/^\.\//);
      const answer = await fetch(new URL(file, `${hub.url()}/docs/`));
      expect(answer.status, file).toBe(200);
      await answer.body?.cancel();
    }
    const shownThere = await fetch(`${hub.url()}/docs/json`);
    expect(await shownThere.json()).toEqual(document);
  });
});

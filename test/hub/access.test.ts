/** Every route that the server has, tried with less than it asks for. */

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isPage } from "#hub/http/access.ts";
import { ACCESS, type HubRoute } from "#hub/http/route.ts";
import { rightsPage, rolesOf } from "../../config/rights-page.ts";
import { addressOf, startTestHub, type TestHub } from "./fixture.ts";

/** Routes that change nothing, with any method but DELETE. */
const QUESTIONS = ["/data", "/dataLossDetection", "/dataQuality", "/fileTrigger/test"];
const WITHOUT_BODY = ["GET", "HEAD", "DELETE"];

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const pages = (): readonly HubRoute[] => hub.routes.filter(({ facts }) => isPage(facts));
const guarded = (): readonly HubRoute[] => hub.routes.filter(({ facts }) => facts.access !== "open" && !isPage(facts));

/** What comes back of every route for one way to call; the keys are `GET /sites` and so on. */
async function answers(routes: readonly HubRoute[], more: Parameters<TestHub["call"]>[2]) {
  const found: Record<string, string> = {};
  for (const route of routes) {
    const body = WITHOUT_BODY.includes(route.method) ? {} : { body: {} };
    const { status, body: problem } = await hub.call(route.method, addressOf(route, {}), {
      ...body,
      ...more,
    });
    found[`${route.method} ${route.url}`] = wordsOf(route.method, `${status} ${problem?.code}`);
  }
  return found;
}

/** A HEAD has the status alone. */
const wordsOf = (method: string, words: string) => (method === "HEAD" ? (words.split(" ")[0] ?? "") : words);
const all = (routes: readonly HubRoute[], words: string) =>
  Object.fromEntries(routes.map(({ method, url }) => [`${method} ${url}`, wordsOf(method, words)]));

describe("every route", () => {
  test("refuses a call without a token before it reads the body, unless it is open", async () => {
    expect(guarded().length).toBeGreaterThan(40);
    const raw = { authorization: "", raw: "{", headers: { "content-type": "application/json" } };
    for (const more of [{ authorization: "" }, raw]) {
      const routes = guarded().filter(({ method }) => !("raw" in more) || !WITHOUT_BODY.includes(method));
      expect(await answers(routes, more)).toEqual(all(routes, "401 unauthenticated"));
    }
  });

  test("refuses a token that lacks its scope", async () => {
    const other = (route: HubRoute) =>
      ["datahub-api", "push-data", "odm-api"].find(
        (scope) => ACCESS[route.facts.access]?.scopes.some((own) => own === scope) !== true,
      );
    for (const scope of ["datahub-api", "push-data", "odm-api"]) {
      const routes = guarded().filter((route) => other(route) === scope);
      expect(await answers(routes, { scope })).toEqual(all(routes, "401 missing-scope"));
    }
  });

  test("that changes or pushes refuses a user without the right", async () => {
    const routes = guarded().filter(({ facts }) => !rolesOf(facts).includes("User"));
    expect(routes.length).toBeGreaterThan(15);
    expect(await answers(routes, { as: "plain" })).toEqual(all(routes, "403 missing-right"));
  });

  test.each([
    ["plain", "User"],
    ["pusher", "Datapusher"],
    ["manager", "Manager"],
    ["admin", "Admin"],
  ] as const)("%s may call what docs/hub-rights.md says of a %s, and no more", async (as, role) => {
    const refused = Object.entries(await answers(guarded(), { as })).filter(([, words]) => words.startsWith("403"));
    const forbidden = guarded().filter(({ facts }) => !rolesOf(facts).includes(role));
    const calls = forbidden.map(({ method, url }) => `${method} ${url}`);
    expect(refused.map(([call]) => call).sort()).toEqual(calls.sort());
  });

  test("is in docs/hub-rights.md as it is", () => {
    const page = readFileSync(new URL("../../docs/hub-rights.md", import.meta.url), "utf8");
    expect(page).toBe(rightsPage(hub.routes));
  });

  test("accepts a manager", async () => {
    const refused = Object.values(await answers(guarded(), {})).filter((words) => /^40[13]\b/.test(words));
    expect(refused).toEqual([]);
  });

  test("requires a right when it changes anything", () => {
    const careless = guarded().filter(
      ({ method, facts, url }) =>
        !["GET", "HEAD"].includes(method) &&
        (facts.status ?? 200) < 400 &&
        !QUESTIONS.includes(url) &&
        ACCESS[facts.access]?.right === "read",
    );
    expect(careless.map(({ method, url }) => `${method} ${url}`)).toEqual([]);
  });
});

describe("every page", () => {
  test("is left out of the documentation of the interface", () => {
    expect(pages().length).toBeGreaterThan(10);
    expect(pages().filter(({ facts }) => facts.hidden !== true)).toEqual([]);
  });

  test("that is not for visitors leads to the sign-in, with a token as without one", async () => {
    const closed = pages().filter(({ facts }) => facts.access !== "visitor");
    for (const authorization of ["", `Bearer ${await hub.token("admin")}`])
      for (const route of closed) {
        const headers = { "content-type": "application/x-www-form-urlencoded", authorization };
        const init = { method: route.method, headers, redirect: "manual" as const };
        const answer = await fetch(hub.url() + addressOf(route, {}), init);
        const led = [answer.status, answer.headers.get("location")?.split("?")[0]];
        expect(led, `${route.method} ${route.url}`).toEqual([303, "/sign-in"]);
      }
  });

  test("takes no form without the token of its own session", async () => {
    for (const route of pages().filter(({ method, facts }) => method === "POST" && facts.access === "visitor")) {
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      const init = { method: "POST", headers, body: "x=1", redirect: "manual" as const };
      const answer = await fetch(hub.url() + addressOf(route, {}), init);
      expect(answer.status, route.url).toBe(403);
    }
  });
});

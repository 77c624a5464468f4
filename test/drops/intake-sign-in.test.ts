/**
 * Guessing of passwords at the HTTP intake, from several addresses of this machine: 127.0.0.2 is another
 * address than 127.0.0.1.
 */
import { request } from "node:http";
import { afterEach, expect, test } from "vitest";
import { gatewayConfig } from "#gateway/config.ts";
import { basic, IntakeRig, intakeSettings } from "./intake-rig.ts";

let rig: IntakeRig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

interface Answer {
  readonly status: number;
  readonly retryAfter: number;
}

function post(path: string, body: string, from: string, headers: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const url = `${rig?.url}${path}`;
    const asked = request(url, { method: "POST", localAddress: from, headers }, (answer) => {
      answer.resume();
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, retryAfter: Number(answer.headers["retry-after"] ?? 0) }),
      );
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

const push = (password: string, from: string) =>
  post("/api/data", "[]", from, { authorization: basic("device", password) });

const token = (fields: Record<string, string>, from: string) => {
  const form = {
    ...{ grant_type: "password", client_id: "device", client_secret: "device-secret", scope: "push-data" },
    ...{ username: "device", password: "device-password" },
    ...fields,
  };
  return post("/connect/token", new URLSearchParams(form).toString(), from, {
    "content-type": "application/x-www-form-urlencoded",
  });
};

const ways = [
  ["passwords by Basic", push],
  ["passwords at the token endpoint", (password: string, from: string) => token({ password }, from)],
  [
    "client secrets",
    (secret: string, from: string) =>
      token({ client_secret: secret === "device-password" ? "device-secret" : secret }, from),
  ],
] as const;

test.each(ways)(
  "of 60 concurrent wrong %s 10 are compared, and the right one is accepted from another address",
  async (_, attempt) => {
    rig = await IntakeRig.start();
    const guesses = await Promise.all(Array.from({ length: 60 }, (_, index) => attempt(`guess-${index}`, "127.0.0.2")));
    expect(guesses.filter(({ status }) => status === 401)).toHaveLength(10);
    const refused = guesses.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(50);
    for (const { retryAfter } of refused) expect(retryAfter).toBeGreaterThan(0);
    expect(await attempt("device-password", "127.0.0.3")).toMatchObject({ status: 200 });
    expect(await attempt("device-password", "127.0.0.2")).toMatchObject({ status: 429 });
  },
);

test.each([
  ["the password was changed", { users: [{ username: "device", password: "another-password" }] }],
  ["the client was removed", { clients: [{ id: "other", secret: "other-secret" }] }],
  ["the client's secret was changed", { clients: [{ id: "device", secret: "another-secret" }] }],
])("a token is refused at once when %s", async (_, change) => {
  rig = await IntakeRig.start();
  const { access_token } = (await rig.token()).body;
  const authorization = `Bearer ${access_token}`;
  const send = () => post("/api/data", "[]", "127.0.0.1", { authorization });
  expect(await send()).toMatchObject({ status: 200 });
  await rig.down();
  await rig.up({}, change);
  expect(await send()).toMatchObject({ status: 401 });
  await rig.down();
  await rig.up();
  expect(await send()).toMatchObject({ status: 200 });
});

test("the limits of sign-ins are settings", async () => {
  rig = await IntakeRig.start(undefined, {}, { throttle: { failures: 2, window: "1h" } });
  for (const status of [401, 401, 429]) expect(await push("no", "127.0.0.2")).toMatchObject({ status });
});

test.each([
  ["a password", { users: [{ username: "device", password: "short" }] }, "drops.0.users.0.password"],
  ["a client secret", { clients: [{ id: "device", secret: "short" }] }, "drops.0.clients.0.secret"],
])("%s that is easy to guess is an error of the configuration", (_, intake, place) => {
  const { error } = gatewayConfig.safeParse(intakeSettings("/tmp", "http://127.0.0.1:1", {}, intake));
  expect(error?.issues.map(({ path, message }) => `${path.join(".")} ${message}`)).toEqual([
    `${place} is shorter than 8 characters and soon guessed; give a longer one`,
  ]);
});

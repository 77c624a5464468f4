/** A person who is asked and says no. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { claimed, sight } from "../ledger/fixtures.ts";
import { captureShown } from "./shown.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-"));
const config = join(folder, "gateway.yaml");
const shown = captureShown();
const { isTTY } = process.stdin;

beforeAll(async () => {
  writeFileSync(
    config,
    `services:
  - name: main
    base: http://127.0.0.1:1
    push: http://127.0.0.1:1/push
    token: http://127.0.0.1:1/token
    credentials: { clientId: c, clientSecret: s, username: u, password: p }
drops: [{ name: field, kind: local, path: ./in }]
triggers: []
ledger: { kind: sqlite, path: ./ledger.sqlite }
`,
  );
  const ledger = await openLedger({ kind: "sqlite", path: join(folder, "ledger.sqlite") }, { clock: systemClock });
  await sight(ledger, "a.csv");
  await claimed(ledger, "b.csv");
  await ledger.close();
  process.stdin.isTTY = true;
});
afterAll(() => {
  process.stdin.isTTY = isTTY;
  rmSync(folder, { recursive: true });
});

describe.each([
  ["forget", "a.csv", "nothing was forgotten"],
  ["cancel", "b.csv", "nothing was cancelled"],
])("%s that was declined", (command, file, words) => {
  const decline = (...more: string[]) => shown.headgate([command, file, "-c", config, ...more], AbortSignal.abort());

  it("ends with 1 and reports that it did nothing", async () => {
    expect(await decline()).toBe(1);
    expect(shown.stdout).toContain(words);
  });

  it("reports it as JSON with --json, and prints nothing else", async () => {
    expect(await decline("--json")).toBe(1);
    expect(JSON.parse(shown.stdout)).toEqual({ done: false, why: words });
  });
});

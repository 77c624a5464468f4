/** A real browser, without a window. In CI it must be there; elsewhere its tests are skipped and say why. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { describe } from "vitest";

const PROGRAM = "/usr/bin/chromium";

/** A suite that opens pages in Chromium; skipped with its reason where there is none, and a failure in CI. */
export function describeInChromium(name: string, suite: () => void): void {
  const reason = existsSync(PROGRAM) ? null : `${PROGRAM} is not installed; .ci/install-servers.sh does that on Debian`;
  if (reason !== null && (process.env["CI"] ?? "") !== "")
    throw new Error(`${name}: ${reason}, and CI leaves nothing out`);
  if (reason !== null) console.info(`skipped: ${name}: ${reason}`);
  describe.skipIf(reason !== null)(reason === null ? name : `${name} (skipped: ${reason})`, suite);
}

/** The caller closes it. Root may only run it without its sandbox. */
export function openChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: PROGRAM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
  });
}

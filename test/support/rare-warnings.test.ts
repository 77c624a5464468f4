import { expect, it } from "vitest";
import { createLog } from "#core/log.ts";
import { createRareWarning } from "#core/rare-warnings.ts";

it("writes one line a minute, with how often it happened since the line before", () => {
  const lines: { from: string; refused: number; msg: string }[] = [];
  const log = createLog("info", { write: (line: string) => void lines.push(JSON.parse(line)) });
  let nowMs = 5;
  const warn = createRareWarning(log, "refused", "requests were refused", () => nowMs);
  for (let at = 0; at < 100; at++) warn({ from: `10.0.0.${at}` });
  expect(lines).toMatchObject([{ from: "10.0.0.0", refused: 1, msg: "requests were refused" }]);
  nowMs += 60_000;
  warn({ from: "10.0.0.7" });
  expect(lines.slice(1)).toMatchObject([{ from: "10.0.0.7", refused: 100 }]);
});

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { ConfigError, TransientError } from "#core/errors.ts";
import { isWorthARestart, startFault } from "#core/start-fault.ts";

const failed = (cause: unknown) => startFault("HG-SPOOL-001", { operation: "open", subject: "it", cause });
const system = (code: string) => Object.assign(new Error(code), { code });

test.each(["ENOSPC", "EDQUOT", "EROFS", "EIO", "EACCES", "ESTALE", "EADDRINUSE", "ECONNREFUSED", "57P03", "08006"])(
  "%s may pass by itself: the daemon is restarted",
  (code) => {
    expect(failed(system(code))).toBeInstanceOf(TransientError);
    expect(failed(new Error("around it", { cause: system(code) }))).toBeInstanceOf(TransientError);
    expect(isWorthARestart(failed(system(code)))).toBe(true);
  },
);

test.each(["ENOENT", "ENOTDIR", "EISDIR", "ENOTFOUND", "28P01", "3D000"])("%s needs an operator", (code) => {
  expect(failed(system(code))).toBeInstanceOf(ConfigError);
  expect(isWorthARestart(failed(system(code)))).toBe(false);
});

test("a database file that cannot be opened may appear with its mount, and foreign content does not change", () => {
  const thrown = (path: string, statement: string) => {
    try {
      new DatabaseSync(path).exec(statement);
    } catch (error) {
      return error;
    }
    throw new Error("nothing was thrown");
  };
  expect(failed(thrown("/nowhere/at/all.sqlite", ""))).toBeInstanceOf(TransientError);
  expect(failed(thrown(import.meta.filename, "PRAGMA user_version"))).toBeInstanceOf(ConfigError);
});

test("a state that another process owns is free again when that one ends", () => {
  const facts = { operation: "open", subject: "it" };
  expect(isWorthARestart(new ConfigError("HG-LEDG-001", facts))).toBe(true);
  expect(isWorthARestart(new ConfigError("HG-CONF-002", facts))).toBe(false);
});

/**
 * What `headgate check` says of single things: clocks, certificates, rights that are lacking, servers that
 * tell odd addresses.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { spanWords } from "#core/clock.ts";
import type { ProbeFinding } from "#gateway/drops/drop.ts";
import { WATCHED_MAX } from "#gateway/drops/local/events.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { certificateFinding, clockFinding, saidWords } from "#gateway/drops/probe-findings.ts";
import { probeRights, type TrialFiles } from "#gateway/drops/probe-trial.ts";
import { testCertificate, testKey } from "./certificate.ts";
import { type Field, never, openFtp, openLocal, openSftp } from "./field.ts";

const HOUR_MS = 3_600_000;

describe("the clock of a server", () => {
  const seen = (offMs: number, precisionMs = 1000) => ({
    beforeMs: 1_000_000,
    afterMs: 1_000_200,
    // Told in steps, rounded down.
    serverMs: Math.floor((1_000_100 + offMs) / precisionMs) * precisionMs,
    precisionMs,
  });

  test.for([0, 300, -300, 900])("agrees when it is off by %i ms, which cannot be measured", (offMs) => {
    expect(clockFinding(seen(offMs), true)).toEqual({
      level: "ok",
      about: "clock",
      what: expect.stringMatching(/^agrees with ours, within [12] s$/),
    });
  });

  test.for([
    [HOUR_MS, "ahead of"],
    [-HOUR_MS, "behind"],
  ] as const)(
    "that is off by %i ms affects only `initial: since`, and may be that of another zone",
    ([offMs, side]) => {
      const finding = clockFinding(seen(offMs), false);
      expect(finding.level).toBe("ok");
      expect(finding.what).toMatch(new RegExp(`^(59 min 59 s|1 h 0 min) ${side} ours$`));
      expect(finding.hint).toMatch(/Only `initial: since`.*zone/);
      expect(clockFinding(seen(offMs), true)).toMatchObject({
        level: "warning",
        hint: expect.stringContaining("initial: since"),
      });
    },
  );

  test("that is slightly off is reported without a hint, and odd minutes are not explained by a zone", () => {
    expect(clockFinding(seen(30_000), true)).toEqual({
      level: "ok",
      about: "clock",
      what: expect.stringMatching(/^(29|30) s ahead of ours$/),
    });
    expect(clockFinding(seen(7 * 60_000), true).hint).not.toContain("zone");
  });

  test("is reported in readable spans", () => {
    const spans = [0, 59_400, 125_000, HOUR_MS, 47 * HOUR_MS, 100 * HOUR_MS].map(spanWords);
    expect(spans).toEqual(["0 s", "59 s", "2 min 5 s", "1 h 0 min", "47 h 0 min", "4 days"]);
  });
});

test.for([
  [31, "ok", "31 days left"],
  [29, "warning", "29 days left"],
  [1, "warning", "1 day left"],
  [-3, "failed", "expired 3 days ago"],
] as const)("a certificate with %i days is %s", ([days, level, words]) => {
  const now = Date.parse("2026-03-01T12:00:00Z");
  const facts = { subject: "ftp.example", issuer: "an authority", validUntilMs: now + days * 86_400_000 };
  const finding = certificateFinding(facts, now);
  expect(finding).toMatchObject({ level, what: expect.stringContaining(words) });
  expect(finding.hint === undefined).toBe(level === "ok");
});

test("the text of a server is shown on one line, without codes, rulers and control characters", () => {
  const greeting = "220---------- Welcome ----------\n220-You are\u0007 user 1\r\n220 bye";
  expect(saidWords(greeting)).toBe("Welcome You are user 1 bye");
  expect(saidWords("x".repeat(500), 50)).toHaveLength(50);
});

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function findingsOf(opening: Promise<Field>): Promise<Readonly<Record<string, ProbeFinding>>> {
  const field = await opening;
  closing.push(() => field.close());
  return Object.fromEntries((await field.drop.probe(never)).map((finding) => [finding.about, finding]));
}

describe("an FTP server", () => {
  test("behind an address translation has its announced address replaced", async () => {
    const server = { extendedPassive: false, passiveAddress: "10.20.30.40" };
    const { passive } = await findingsOf(openFtp("auto", server)());
    expect(passive).toMatchObject({
      level: "ok",
      what: "PASV announces 10.20.30.40, which is replaced by 127.0.0.1, the address of the control connection",
      hint: expect.stringContaining("passiveAddress"),
    });
  });

  test("without TLS is a warning, and its features are listed by their use", async () => {
    const { server, features, listing } = await findingsOf(openFtp("list")());
    expect(server).toMatchObject({ level: "warning", what: expect.stringContaining("without encryption") });
    expect(features?.what).toMatch(/^MDTM, SIZE, REST, UTF8, EPSV; not MLST$/);
    expect(listing?.what).toContain("by LIST");
  });

  test("that only supports LIST has imprecise times, which is reported", async () => {
    const { features } = await findingsOf(openFtp("list")({ listing: "list" }));
    expect(features).toMatchObject({ level: "warning", hint: expect.stringContaining("minute") });
  });

  test("with TLS shows its certificate, and whether data connections resume the session", async () => {
    const tls = { tls: { key: testKey, cert: testCertificate } };
    const found = await findingsOf(openFtp("auto", tls)({ tls: "explicit", ca: testCertificate }));
    expect(found["certificate"]).toMatchObject({
      level: "ok",
      what: expect.stringMatching(/^localhost, issued by localhost, until 2126-10-28/),
    });
    expect(found["TLS session"]?.what).toMatch(/^data connections .* \(TLSv1\.3\)$/);
    expect(found["server"]).toMatchObject({
      level: "ok",
      what: expect.stringContaining("with explicit TLS"),
    });
  });
});

test("an SFTP server is shown with its host key, and why it is trusted", async () => {
  const { server, "host key": key } = await findingsOf(openSftp());
  expect(server?.what).toMatch(/^ssh2js\S*, logged in to 127\.0\.0\.1:\d+ as meter$/);
  expect(key?.what).toMatch(/^ssh-ed25519 SHA256:[\w+/]{43}, pinned in hostKeys \(1 of 1\)$/);
});

/** A folder in memory, of which some calls are refused. */
function folder(refused: readonly (keyof TrialFiles)[], words = "Permission denied") {
  const lying = new Set<string>();
  class Refusal extends Error {}
  const may = (operation: keyof TrialFiles) => {
    if (refused.includes(operation)) throw new Refusal(words);
  };
  const take = (path: string) => {
    if (!lying.delete(path)) throw new Error(`no such file: ${path}`);
  };
  const files: TrialFiles = {
    write: async (path) => {
      may("write");
      lying.add(path);
    },
    modified: async () => ({ atMs: Date.now(), precisionMs: 1 }),
    exists: async (path) => lying.has(path),
    isFolder: async (path) => lying.has(path),
    makeFolder: async (path) => {
      may("makeFolder");
      lying.add(path);
    },
    removeFolder: async (path) => take(path),
    move: async (from, to) => {
      may("move");
      take(from);
      lying.add(to);
    },
    remove: async (path) => {
      may("remove");
      take(path);
    },
    isRefusal: (thrown) => thrown instanceof Refusal,
  };
  return { lying, files };
}

describe("missing rights", () => {
  const rights = async (refused: readonly (keyof TrialFiles)[], finish: Readonly<Record<string, unknown>>) => {
    const { lying, files } = folder(refused);
    const options = dropOptions.parse({ kind: "local", name: "meters", path: "/srv/meters", finish });
    const { findings } = await probeRights({ options, place: "/srv/meters", who: "meter", files: () => files }, never);
    expect([...lying], "nothing stays").toEqual([]);
    return findings;
  };
  const leave = { delivered: "leave" };
  const every = ["write", "move", "remove", "makeFolder"] as const;

  test.for([[every], [["write"]], [["move"]], [["remove"]], [["move", "remove"]]] as const)(
    "are a note when every file is left at its path (%j)",
    async ([refused]) => {
      const findings = await rights(refused, leave);
      expect(findings.map(({ level }) => level)).not.toContain("failed");
      expect(findings[0]).toMatchObject({
        level: "ok",
        what: expect.stringMatching(/refused \(Permission denied\), and no rule of `finish` needs it$/),
      });
    },
  );

  test.for([
    [every, {}, "renaming and deleting is refused (Permission denied), which finish.delivered: archive needs"],
    [["write"], {}, "writing a file is refused (Permission denied), which finish.delivered: archive needs"],
    [["move"], {}, "renaming is refused (Permission denied), which finish.delivered: archive needs"],
    [
      ["remove"],
      { delivered: "delete", duplicate: "delete" },
      "deleting is refused (Permission denied), which finish.delivered: delete, finish.duplicate: delete needs",
    ],
    [
      ["remove"],
      { delivered: { archive: "done", keep: "90d" } },
      "deleting is refused (Permission denied), which finish.delivered: archive needs",
    ],
    [
      ["makeFolder"],
      { delivered: { archive: "done/2026" } },
      "files cannot be moved to done/2026: Permission denied (finish.delivered: archive)",
    ],
  ] as const)("to %j with the rules %j are a failure that names the rule", async ([refused, finish, words]) => {
    const findings = await rights(refused, finish);
    const failed = findings.filter(({ level }) => level === "failed");
    expect(failed.map(({ what }) => what)).toEqual([words]);
    expect(failed[0]?.hint).toContain("meter");
  });

  test("to delete are checked before a file is written that would remain, so renaming is not tried", async () => {
    const findings = await rights(["remove"], {});
    expect(findings.map(({ level }) => level)).toEqual(["ok", "warning"]);
    expect(findings[1]?.what).toContain("was not tried");
  });

  test("are a failure when a file of the check could not be removed", async () => {
    const { files, lying } = folder([]);
    let removals = 0;
    const stubborn: TrialFiles = {
      ...files,
      remove: async (path) => {
        if (lying.has(path) && ++removals > 0) throw new Error("Operation failed");
        await files.remove(path);
      },
    };
    const options = dropOptions.parse({ kind: "local", name: "m", path: "/srv/m", finish: leave });
    const facts = { options, place: "/srv/m", who: "meter", files: () => stubborn };
    const { findings } = await probeRights(facts, never);
    expect(findings.at(-1)).toMatchObject({
      level: "failed",
      what: expect.stringMatching(/^\.headgate-check-\S+\.tmp of this check could not be removed$/),
    });
    expect(lying.size).toBe(1);
  });
});

describe("file-system events of a local drop", () => {
  let field: Field;
  afterEach(() => field.close());
  const findingOf = async () => (await field.drop.probe(never)).find(({ about }: ProbeFinding) => about === "events");

  test("arrive in a small folder", async () => {
    field = await openLocal();
    expect(await findingOf()).toMatchObject({ level: "ok", what: "arrive, so that files are seen at once" });
  });

  test("are not used in a folder that is too large, as the check says", async () => {
    field = await openLocal();
    for (let at = 0; at < WATCHED_MAX.folders; at += 1) mkdirSync(join(field.root, `${at}`));
    expect(await findingOf()).toEqual({
      level: "warning",
      about: "events",
      what:
        "are not used: 500 files and folders in 501 folders; beyond 20000, or 500 folders, " +
        "files are found only by polls",
      hint: "`every` determines how late a file is found. Archived files, and excluded folders, do not count.",
    });
  });
});

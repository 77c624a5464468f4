/** Six kinds of load of one account, and the small thing of the same kind that another account does meanwhile. */
import { setTimeout as sleep } from "node:timers/promises";
import { MailServer } from "../test/operations/mail-server.ts";
import { STEP_MS, STEPS_A_YEAR } from "./hub-data.ts";
import { until, type WallsHub } from "./walls-hub.ts";

export interface Load {
  readonly name: string;
  /** What else the hub has in its configuration. */
  readonly options?: (() => Promise<object>) | object;
  prepare(hub: WallsHub): Promise<void>;
  /** The small thing of the other account, until it is done. */
  act(hub: WallsHub, nth: number): Promise<void>;
  /** Resolves when the load has begun; it goes on until the signal is aborted. */
  begin(hub: WallsHub, stop: AbortSignal): Promise<void>;
  end?(): Promise<void>;
}

const SOURCES = Number(process.env["HEADGATE_BENCH_SOURCES"] ?? 40_000);
const MASTER_ROWS = 20_000;
const MASTER_USERS = 2_000;
const MAILS = 450;
const SCANS = 200;
const SLOW_FILES = 50;
const CALCULATED = 20;
const TERMS = 350;
const AWHILE_MS = 2_000;

function numbers<Value>(length: number, map: (nth: number) => Value): Value[] {
  return Array.from({ length }, (_, nth) => map(nth));
}

/** Again and again, beside the caller. */
async function repeat(stop: AbortSignal, work: (round: number) => Promise<unknown>): Promise<void> {
  const going = (async () => {
    for (let round = 0; !stop.aborted; round += 1) await work(round);
  })();
  going.catch((thrown: unknown) => {
    if (!stop.aborted) process.stderr.write(`the load ended: ${thrown}\n`);
  });
  await sleep(AWHILE_MS);
}

const MASTER_HEADER = "site_name;site_type;site_time_zone;source_serial_number;mapping_config;unit;variable_name";

function masterFile(rows: number, users: number, version: number | string, custom = ""): string {
  const header = `${MASTER_HEADER}${custom};user_name;user_first_name\n`;
  const cell = custom === "" ? "" : ";kept";
  const lines = numbers(rows, (nth) => `Site ${nth % 500};3;Europe/Brussels;S-${nth};kWh;kWh;${version}${cell};;\n`);
  const blanks = ";".repeat(MASTER_HEADER.split(";").length - (custom === "" ? 1 : 0));
  return header + lines.join("") + numbers(users, (nth) => `${blanks};user-${nth};${version}\n`).join("");
}

function masterData(): Load {
  return {
    name: "files of master data",
    async prepare({ heavy, other }) {
      for (const caller of [heavy, other]) await caller.trigger("md_", { fileType: "OpisenseMasterData" });
    },
    async act({ other }, nth) {
      await other.stored(await other.store(`md_${nth}.csv`, masterFile(1, 0, `Name ${nth}`)));
    },
    begin: ({ heavy }, stop) =>
      repeat(stop, async (round) => {
        const file = masterFile(MASTER_ROWS, MASTER_USERS, `Version ${round}`);
        await heavy.stored(await heavy.store(`md_${round}.csv`, file));
      }),
  };
}

function mails(): Load {
  let server: MailServer | undefined;
  const invite = (name: string) => ({ email: `${name}@example.org`, roles: ["User"] });
  return {
    name: "mails that a server puts off",
    async options() {
      server = await MailServer.start({
        authOptional: true,
        onRcptTo: ({ address }, _session, done) =>
          done(address.startsWith("full") ? Object.assign(new Error("mailbox full"), { responseCode: 450 }) : null),
      });
      const smtp = { host: "127.0.0.1", port: server.port, security: "none" };
      return { mail: { smtp, toPeopleAnHour: 100_000 } };
    },
    prepare: async () => undefined,
    async act({ other }, nth) {
      const { email } = invite(`other-${nth}`);
      await other.call("POST", "/account/invitations", invite(`other-${nth}`));
      await until(() => server?.mails.some(({ to }) => to.includes(email)) === true);
    },
    async begin({ heavy }) {
      for (let nth = 0; nth < MAILS; nth += 1) await heavy.call("POST", "/account/invitations", invite(`full-${nth}`));
    },
    end: async () => server?.close(),
  };
}

function scans(): Load {
  return {
    name: "files that a scanner takes long for",
    options: { files: { scan: { command: ["sh", "-c", "if grep -q SLOW; then sleep 30; fi"] } } },
    prepare: async () => undefined,
    async act({ other }, nth) {
      await other.stored(await other.store(`file_${nth}.txt`, `file ${nth}`), "clean");
    },
    async begin({ heavy }) {
      for (let nth = 0; nth < SCANS; nth += 1) await heavy.store(`slow_${nth}.txt`, `SLOW ${nth}`);
    },
  };
}

function expressions(): Load {
  const calculated = (sourceOf: number, id: number, formula: string) => ({
    ...{ name: "Calculated", sourceId: sourceOf, variableTypeId: 0, unitId: 8 },
    calculated: { calculatedVariableFormulas: [{ formula, variables: [{ alias: "a", variableId: id }] }] },
  });
  const sourceOf = async ({ call }: WallsHub["heavy"], id: number) =>
    ((await call("GET", `/variables/${id}`)) as { sourceId: number }).sourceId;
  const ids = { heavy: 0, other: 0, result: 0 };
  const year = (round: number) =>
    numbers(STEPS_A_YEAR, (step) => ({ date: new Date(Date.UTC(2025, 0, 1) + step * STEP_MS), value: step + round }));
  return {
    name: "long expressions over a year",
    async prepare({ heavy, other }) {
      ids.heavy = await heavy.variable("H-1");
      ids.other = await other.variable("O-1");
      const result = calculated(await sourceOf(other, ids.other), ids.other, "= a * 2 + 1");
      ids.result = Number(await other.call("POST", "/variables", result));
      const long = `= ${numbers(TERMS, (nth) => `a * ${nth + 1}`).join(" + ")}`;
      const source = await sourceOf(heavy, ids.heavy);
      for (let nth = 0; nth < CALCULATED; nth += 1)
        await heavy.call("POST", "/variables", calculated(source, ids.heavy, long));
    },
    async act({ other }, nth) {
      const date = new Date(Date.UTC(2026, 0, 1) + nth * STEP_MS).toISOString();
      await other.push([{ variableId: ids.other, data: [{ date, value: nth }] }]);
      const query = `/data?VariableIds=${ids.result}&DisplayLevel=ValueVariableDate`;
      await until(async () => ((await other.call("GET", query)) as unknown[]).length > nth);
    },
    begin: ({ heavy }, stop) =>
      repeat(stop, async (round) => {
        await heavy.push([{ variableId: ids.heavy, data: year(round) }]);
        await until(async () => ((await heavy.call("GET", "/calculations/progress")) as unknown[]).length === 0);
      }),
  };
}

/** This pattern tries each way to divide the letters. */
const SLOW = "^(a+)+$";

function mapping(): Load {
  const metadata = {
    ...{ date: { column: "date" }, value: "value", target: { variableId: 1 }, timeZone: "UTC" },
    skipRows: [SLOW],
  };
  return {
    name: "files under a slow pattern",
    async prepare({ other }) {
      await other.variable("O-1");
      await other.trigger("quick_", { mapping: "standard" });
    },
    async act({ other }, nth) {
      const date = new Date(Date.UTC(2026, 0, 1) + nth * STEP_MS).toISOString();
      const rows = `date,value,source_serial_number,mapping_config\n${date},${nth},O-1,kWh\n`;
      await other.stored(await other.store(`quick_${nth}.csv`, rows));
    },
    async begin({ heavy }) {
      // Files of one trigger are mapped one after another.
      for (let nth = 0; nth < SLOW_FILES; nth += 1) {
        const beginning = `slow_${nth}_`;
        await heavy.trigger(beginning, { mapping: "delimited", metadata });
        await heavy.store(`${beginning}.csv`, `date,value\n2026-03-01T00:00:00Z,1\n${"a".repeat(60)}!,${nth}\n`);
      }
      await sleep(AWHILE_MS);
    },
  };
}

function forms(): Load {
  let id = 0;
  const fields = (name: string) => ({ name: "Contract", groups: [{ name: "Main", fields: [{ name }] }] });
  let variable = 0;
  return {
    name: `changes of a form of ${SOURCES} sources`,
    async prepare({ heavy, other }) {
      variable = await other.variable("O-1");
      ({ id } = (await heavy.call("POST", "/form", fields("Note"))) as { id: number });
      await heavy.trigger("md_", { fileType: "OpisenseMasterData" });
      const file = masterFile(SOURCES, 0, "Meter", ";source_custom.Contract.Main.Note");
      await heavy.stored(await heavy.store("md_all.csv", file));
    },
    async act({ other }, nth) {
      const date = new Date(Date.UTC(2026, 0, 1) + nth * STEP_MS).toISOString();
      await other.push([{ variableId: variable, data: [{ date, value: nth }] }]);
    },
    begin: ({ heavy }, stop) =>
      repeat(stop, async (round) => {
        const form = (await heavy.call("GET", `/form/${id}`)) as {
          readonly groups: readonly [{ readonly id: number; readonly fields: readonly [{ readonly id: number }] }];
        };
        const [group] = form.groups;
        const renamed = { ...group, fields: [{ ...group.fields[0], name: round % 2 === 0 ? "Remark" : "Note" }] };
        await heavy.call("PUT", `/form/${id}`, { groups: [renamed] });
      }),
  };
}

export const LOADS: readonly Load[] = [masterData(), mails(), scans(), expressions(), mapping(), forms()];

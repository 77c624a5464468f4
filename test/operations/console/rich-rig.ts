/** A gateway that has something on every page of its console, and on most of them a hostile text. */

import { controlMigrations } from "#app/cli/migrate/lazy-control.ts";
import { silentLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { migrate } from "../../migration/migrate-command.ts";
import { drop, GatewayRig, trigger, until } from "../../runs/gateway-rig.ts";

/** Would change the title of the page if it were HTML, and has a mark that turns what follows. */
export const HOSTILE = '<img src=x onerror="document.title=1"> \u202egnp';
/** As pages show it. */
export const SHOWN = '<img src=x onerror="document.title=1"> ‹U+202E›gnp';
export const LONG = "x".repeat(1_000_000);
export const SETTINGS = {
  delimiter: ";",
  timeZone: "Europe/Brussels",
  date: { column: "When", format: "dd/MM/yyyy HH:mm" },
  target: { sourceSerialNumber: "{Meter}", mappingConfig: "v" },
  value: "kWh",
};
export const TEMPLATE = {
  when: "ordered",
  site: { name: "Plant", typeId: 10, timeZoneId: "UTC" },
  source: { name: "Meter {source}" },
  variable: { name: "{mappingConfig} of {source}", unit: "kWh" },
};

export function rows(meter: string, values: readonly string[]): string {
  return ["When;Meter;kWh", ...values.map((value, at) => `01/03/2026 0${at}:00;${meter};${value}`), ""].join("\n");
}

export interface RichRig {
  readonly gateway: Gateway;
  readonly folder: string;
  close(): Promise<void>;
}

/** Its files are delivered, quarantined, held and unmatched; a drop is in trouble, and a migration has ended. */
export async function openRichRig(): Promise<RichRig> {
  const rig = await GatewayRig.start();
  await rig.variable("M-1");
  const mapped = { mapper: "delimited", metadata: SETTINGS };
  rig.configure({
    operations: { listen: "127.0.0.1:0", console: { histories: ["./history"] } },
    drops: [drop("in"), drop("other"), { ...drop("gone"), path: `./not/${HOSTILE}` }],
    triggers: [
      trigger(HOSTILE, { ...mapped, drops: ["other"], expect: { by: "00:05", timeZone: "UTC" } }),
      trigger("meters", { ...mapped, provision: TEMPLATE }),
    ],
  });
  rig.put("in/good.csv", rows("M-1", ["1.5", "2.5", "3.5"]));
  rig.put("in/north.csv", rows("M-1", ["1,5", "2,5", "3,5"]));
  rig.put("in/south.csv", rows("M-1", ["1,5", "2,5", "3,5"]));
  rig.put("in/unknown.csv", rows("<b>M-9</b>", ["1.5", "2.5"]));
  rig.put(`in/${HOSTILE}.csv`, rows("<script>document.title=2</script>", [HOSTILE.replaceAll('"', "'"), LONG]));
  rig.put(`in/${HOSTILE}.txt`, "x");
  rig.put("in/notes.txt", "x");
  rig.put("other/today.csv", rows("M-1", ["4.5"]));
  rig.put("history/good.csv", rows("M-1", ["5.5"]));
  rig.put(`history/${HOSTILE}.csv`, `variable_id,date,value\n1,2024-01-01T00:00:00Z,${HOSTILE.replaceAll('"', "'")}\n`);
  const migrations = controlMigrations(rig.config);
  const options = { log: silentLog, migrations, configFile: rig.config };
  const gateway = await startGateway(loadGatewayConfig(rig.config), options);
  await until("all files were mapped", async () => {
    const states = (await gateway.ledger.recentRuns(20)).map(({ state }) => state).toSorted();
    return states.join() === "confirmed,confirmed,held,quarantined,quarantined,quarantined";
  });
  await migrate(rig);
  return {
    gateway,
    folder: rig.folder,
    close: async () => {
      await gateway.stop();
      await migrations.close();
      await rig.close();
    },
  };
}

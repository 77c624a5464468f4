/**
 * `npm run bench -- NAME…`: measures speed and memory beside baselines in the same run, and prints ratios.
 * Nothing asserts them.
 */
import { benchAlarms } from "./alarms.ts";
import { benchCalculated } from "./calculated.ts";
import { benchConsole } from "./console.ts";
import { benchDelivery } from "./delivery.ts";
import { benchDrops } from "./drops.ts";
import { benchExplorer } from "./explorer.ts";
import { benchHub } from "./hub.ts";
import { benchMapping } from "./mapper.ts";
import { benchQuality } from "./quality.ts";
import { benchScripts } from "./scripts.ts";
import { benchTransfer } from "./transfer.ts";
import { benchWalls } from "./walls.ts";

const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  alarms: benchAlarms,
  calculated: benchCalculated,
  console: benchConsole,
  delivery: benchDelivery,
  drops: benchDrops,
  explorer: benchExplorer,
  hub: benchHub,
  mapping: benchMapping,
  quality: benchQuality,
  scripts: benchScripts,
  transfer: benchTransfer,
  walls: benchWalls,
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => BENCHES[name] === undefined);
if (unknown.length > 0) {
  process.stderr.write(`there is no bench ${unknown.join(", ")}; there are ${Object.keys(BENCHES).join(", ")}\n`);
  process.exitCode = 2;
} else {
  for (const name of names.length === 0 ? Object.keys(BENCHES) : names) await BENCHES[name]?.();
}

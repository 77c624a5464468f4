/** Daily exports of Helios loggers: `Zeitpunkt;Zähler;Wirkarbeit kWh;Status`, local time, decimal comma. */
import { defineMapper, z } from "headgate/mapper";

/** Values of the column `Status`, and what follows for the row. */
const STATUS: Readonly<Record<string, "good" | "substituted" | "failed">> = {
  G: "good",
  E: "substituted",
  F: "failed",
};

export default defineMapper({
  name: "helios-logger",
  summary: "CSV exports of Helios loggers: semicolons, decimal comma, local time through daylight saving",
  version: "1.0.0",
  sourceZone: true,
  conflicts: "refuse",
  settings: z.strictObject({
    timeZone: z.string().min(1).describe("Zone of the logger's clock, such as Europe/Berlin. No default."),
    mappingConfig: z.string().min(1).default("kWh").describe("mappingConfig of the variable that takes the energy."),
    encoding: z.string().min(1).default("utf-8").describe("Encoding of the file; older firmware writes windows-1252."),
  }),

  async map({ file, settings, emit, reject, eachRow, time, number, finding }) {
    let failed = 0;
    type Names = "Zeitpunkt" | "Zähler" | "Wirkarbeit kWh" | "Status";
    const rows = file.csv<Names>({ columns: true, delimiter: ";", encoding: settings.encoding });
    await eachRow(rows, (row) => {
      const meter = row["Zähler"];
      // Only the order of the rows distinguishes the passes of the repeated autumn hour, including rows without a
      // reading.
      const date = time.local(row["Zeitpunkt"], "dd.MM.yyyy HH:mm:ss", settings.timeZone, {
        byOrder: meter,
      });
      const status = STATUS[row["Status"]];
      if (status === undefined) {
        reject(row, {
          column: "Status",
          message: `the status "${row["Status"]}" is not known`,
          hint: "Known are G, E and F.",
        });
        return;
      }
      if (status === "failed") {
        // The logger reported that it had no reading: the row holds nothing to push.
        failed += 1;
        return;
      }
      emit({
        target: { sourceSerialNumber: meter, mappingConfig: settings.mappingConfig },
        date,
        value: number(row["Wirkarbeit kWh"], { decimal: "," }),
        tags: status === "substituted" ? { quality: "substituted" } : undefined,
        unit: "kWh",
        at: row,
      });
    });
    if (failed > 0)
      finding({ kind: "status", message: "rows without a reading (status F) were left out", count: failed });
  },
});

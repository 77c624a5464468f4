/** Which rows of the tables of points a reading of them is about; the same SQL in either store. */
import type { PointView, VariableFacts } from "./store.ts";

/** One row a point. Of a versioned variable read by tag or as of a moment, a row of its versions; otherwise the latest value. */
export function selection(
  variable: VariableFacts,
  view: PointView,
): { from: string; values: (string | number)[] } {
  if (view.kind === "tag") {
    const table = variable.isVersioned ? "point_version" : "point";
    return { from: `FROM ${table} WHERE variable_id = ? AND version = ?`, values: [variable.id, view.tag] };
  }
  if (view.kind === "asOf" && variable.isVersioned) {
    return {
      from: `FROM point_version AS seen WHERE variable_id = ? AND version_us = (SELECT max(version_us) FROM point_version AS known
        WHERE known.variable_id = seen.variable_id AND known.at_ms = seen.at_ms AND known.version_us <= ?)`,
      values: [variable.id, view.versionUs],
    };
  }
  return { from: "FROM point WHERE variable_id = ?", values: [variable.id] };
}

/** The reference of aggregates, from the one table of their facts. */
import { AGGREGATE_FACTS, AGGREGATED, aggregateUnit } from "#wire/index.ts";

const FROM = {
  parts: "count, sum, least and greatest value of its days",
  points: "every point",
} as const;

export function aggregatesPage(): string {
  const rows = AGGREGATED.map((name) => {
    const { id, column, words, meaning, from, pointsMin } = AGGREGATE_FACTS[name];
    const unit = aggregateUnit(name, "kWh") || "none";
    return `| \`${name}\` | ${id} | ${meaning} | \`${column}\` | ${unit} | ${pointsMin} | ${FROM[from]} | ${words} |`;
  });
  const banded = AGGREGATED.filter((name) => AGGREGATE_FACTS[name].hasBand).join(", ");
  return `# Aggregates

\`Aggregation\` and \`Aggregations\` of \`GET /data\` and its export, \`aggregate\` of variables, \`aggregation\` of
inputs of calculated variables, \`aggregate(…)\` of [expressions](expressions.md) and the choice of the
[explorer](explorer.md) have these. 0 is \`None\`. A period without points has no row; an aggregate is left out of its
row where the period has fewer points than it needs, or where no double holds the result.

| name | id | meaning | column | unit of kWh | least points | a long period follows from | in words |
|---|---|---|---|---|---|---|---|
${rows.join("\n")}

\`unitId\` of a row is that of the values, whatever the aggregate. What follows from days is read from rollups, where
the zone and the unit are those of the stored days ([performance](dev/performance.md)). The explorer draws a band from
minimum to maximum around ${banded}.
`;
}

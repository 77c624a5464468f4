import { describe, expect, it } from "vitest";
import { FileError, type MapContext, type Reading, RowError } from "#mapping/mapper.ts";
import { FINDINGS_MAX, REJECTED_ROWS_MAX, shorten } from "#mapping/rejections.ts";
import { mapWith } from "./kit.ts";

const GOOD: Reading = { target: { variableId: 1 }, date: "2026-03-01T00:00:00Z", value: 1 };
const CSV = "id,at,value\n1,2026-03-01T00:00:00Z,1\n2,2026-03-01T00:00:00Z,x\n3,2026-03-01T00:00:00Z,3\n";

describe("emit", () => {
  it.each<[string, unknown, string]>([
    ["no target", { target: undefined }, "has no target"],
    ["a target without identifier", { target: { mappingConfig: "kWh" } }, "has no identifier"],
    [
      "two identifiers",
      { target: { variableId: 1, sourceId: 2, mappingConfig: "kWh" } },
      "two identifiers, variableId and sourceId",
    ],
    ["a source without selector", { target: { sourceEan: "5" } }, "exactly one of mappingConfig and variableTypeId"],
    [
      "a source with two selectors",
      { target: { sourceEan: "5", mappingConfig: "a", variableTypeId: 1 } },
      "exactly one of",
    ],
    ["an empty identifier", { target: { sourceName: " ", mappingConfig: "a" } }, "sourceName is empty"],
    ["an id below 1", { target: { variableId: 0 } }, "variableId is 0, and ids begin at 1"],
    [
      "an id of a source below 1",
      { target: { sourceId: -1, variableTypeId: 0 } },
      "sourceId is -1, and ids begin at 1",
    ],
    ["an id that is text", { target: { variableId: "7" } }, "variableId is not a whole number"],
    ["a misspelt field", { target: { variableId: 1, variableID: 2 } }, "unknown field variableID"],
    ["a date without designator", { date: "2026-03-01T00:00:00" }, "has no designator"],
    ["a date of nonsense", { date: "soon" }, "is not of the form"],
    ["an invalid Date", { date: new Date("x") }, "the date is not valid"],
    ["the zero of a spreadsheet", { date: "1899-12-30T00:00:00Z" }, "not plausible"],
    ["a date that is a number", { date: 1 }, "not an instant"],
    ["a value that is not finite", { value: Number.NaN }, "not finite"],
    ["a value that is text", { value: "1" }, "not a number"],
    ["tags that are not text", { tags: { a: 1 } }, 'the tag "a" is not text'],
    ["half a character", { tags: { a: "\ud800" } }, "is not text"],
    ["a unit that is not text", { unit: 5 }, "the unit is not text"],
  ])("counts %s as a refused row with its place", async (_, wrong, message) => {
    const reading = { ...GOOD, at: { row: 7, sheet: "March" }, ...(wrong as object) } as Reading;
    const { result } = await mapWith(({ emit }) => {
      emit(reading);
      emit(GOOD);
    });
    expect(result).toMatchObject({
      status: "failed",
      rejectedCount: 1,
      reason: { code: "HG-MAP-005", place: { row: 7, sheet: "March" } },
    });
    expect(result.status === "failed" && result.reason.message).toContain(message);
  });

  it("takes dates as instants, dates and text, and writes them in UTC", async () => {
    const dates = [
      Temporal.Instant.from("2026-03-01T00:00:00Z"),
      new Date("2026-03-01T00:00:00.250Z"),
      "2026-03-01T01:00:01+01:00",
    ];
    const { elements } = await mapWith(({ emit }) => {
      for (const date of dates) emit({ ...GOOD, date });
    });
    expect(elements[0]?.data.map(({ date }) => date)).toEqual([
      "2026-03-01T00:00:00Z",
      "2026-03-01T00:00:00.250Z",
      "2026-03-01T00:00:01Z",
    ]);
  });

  it("recognizes a target that the mapper changed between two readings", async () => {
    const target = { variableId: 1 };
    const { elements } = await mapWith(({ emit }) => {
      emit({ ...GOOD, target });
      target.variableId = 2;
      emit({ ...GOOD, target });
    });
    expect(elements.map(({ variableId }) => variableId)).toEqual([1, 2]);
  });

  it("keeps the declared unit beside the target and refuses a second one", async () => {
    const { result } = await mapWith(({ emit }) => emit({ ...GOOD, unit: "kWh" }));
    expect(result).toMatchObject({
      targets: [{ kind: "variableId", target: "variableId=1", points: 1, unit: "kWh" }],
    });
    const mixed = await mapWith(({ emit }) => {
      emit({ ...GOOD, unit: "kWh" });
      emit({ ...GOOD, date: new Date(0), unit: "MWh" });
    });
    expect(mixed.result).toMatchObject({
      reason: { message: "variableId=1 has readings in kWh and in MWh" },
    });
  });
});

describe("error texts", () => {
  const WILD = `\0\n\u202e${"\0x".repeat(50_000)}`;
  const SAYS: Record<string, (context: MapContext<unknown>) => void | Promise<void>> = {
    "a refused row": ({ reject }) =>
      reject({ row: 1, text: WILD, sheet: WILD }, { message: WILD, hint: WILD, column: WILD }),
    "a RowError that nobody catches": () => {
      throw new RowError(WILD, { text: WILD, hint: WILD, column: WILD });
    },
    "a FileError": () => {
      throw new FileError(WILD, { text: WILD, hint: WILD, sheet: WILD, row: 1 });
    },
    "an error of the mapper": () => {
      throw new Error(WILD);
    },
    "a reading that no batch holds": ({ emit }) => emit({ ...GOOD, target: { sourceName: WILD, mappingConfig: "a" } }),
    "a target that is unknown": ({ emit }) => emit({ ...GOOD, target: { [WILD]: 1 } as unknown as Reading["target"] }),
  };

  it.each(Object.keys(SAYS))("is short and free of control characters: %s", async (name) => {
    const { result } = await mapWith((context) => SAYS[name]?.(context), {
      limits: { pointsMax: 10, bytesMax: 1000 },
    });
    if (result.status !== "failed") throw new Error("it was mapped");
    const { message, hint = "", place = {} } = result.reason;
    for (const text of [message, hint, ...Object.values(place).map(String)]) {
      expect(text.length).toBeLessThanOrEqual(401);
      expect(text).not.toMatch(/[\p{Cc}\u202e]/u);
    }
  });

  it("keeps texts unchanged, and cuts neither an escape nor a character in two", () => {
    expect(shorten("Zähler 😀 \\n")).toBe("Zähler 😀 \\n");
    expect(shorten("a\tb\0")).toBe("a\\tb\\u0000");
    expect(shorten("ab\0", 5)).toBe("ab…");
    expect(shorten("abcd😀", 5)).toBe("abcd…");
    expect(shorten("abcde", 5)).toBe("abcde");
  });
});

describe("findings", () => {
  it("are counted by kind and message, with the first and the last place, also of a file that failed", async () => {
    const find = ({ emit, finding, reject }: MapContext<unknown>, isFailed: boolean) => {
      emit(GOOD);
      for (const row of [4, 7, 9]) finding({ kind: "skipRows", message: "left out", where: { row }, text: `r${row}` });
      finding({ kind: "missing", message: "no value", count: 12 });
      finding({ kind: "skipRows", message: "left out", attention: true });
      if (isFailed) reject({ row: 10 }, "bad");
    };
    const findings = [
      {
        ...{ kind: "skipRows", message: "left out", count: 4, attention: true },
        ...{ first: { row: 4, text: "r4" }, last: { row: 9, text: "r9" } },
      },
      { kind: "missing", message: "no value", count: 12 },
    ];
    expect((await mapWith((context) => find(context, false))).result).toMatchObject({ status: "mapped", findings });
    expect((await mapWith((context) => find(context, true))).result).toMatchObject({ status: "failed", findings });
  });

  it("are added for comments behind the first row that a reader leaves out, once for each line", async () => {
    const { result } = await mapWith(
      async ({ file, emit, eachRow }) => {
        for (let pass = 0; pass < 2; pass += 1) await eachRow(file.csv({ comment: "#" }), () => emit(GOOD));
        const columns = [{ name: "a", start: 1, width: 1 }];
        await eachRow(file.fixedWidth({ columns, comment: "#" }), () => emit(GOOD));
      },
      { content: "#1\na\n#2\nb\n#3\n" },
    );
    expect(result.findings[0]).toEqual({
      ...{ kind: "comment", message: "lines that begin with `#` were left out", count: 2 },
      ...{ first: { row: 3, text: "#2" }, last: { row: 5, text: "#3" } },
    });
  });

  it("are kept up to a limit, beyond which they are counted together, with texts that are safe to show", async () => {
    const { result } = await mapWith(({ emit, finding }) => {
      emit(GOOD);
      for (let nth = 0; nth < FINDINGS_MAX + 3; nth += 1)
        finding({ kind: "odd", message: `of its own ${nth}`, where: { row: nth + 1 }, text: "a\u202e\n" });
    });
    expect(result.findings).toHaveLength(FINDINGS_MAX + 1);
    expect(result.findings[0]?.first?.text).toBe("a\\u202e\\n");
    const rows = { first: { row: FINDINGS_MAX + 1 }, last: { row: FINDINGS_MAX + 3 } };
    expect(result.findings.at(-1)).toMatchObject({ kind: "further", message: "further findings", count: 3, ...rows });
  });
});

describe("refused rows", () => {
  it("cuts dates to the millisecond, reports it once, and treats dates that are equal then as one", async () => {
    const [first, second] = ["2026-03-01T00:00:00.123456Z", "2026-03-01T00:00:00.123789Z"];
    const { result, elements } = await mapWith(({ emit, time }) => {
      emit({ ...GOOD, date: first, value: 1 });
      emit({ ...GOOD, date: time.iso(second), value: 2 });
      emit({ ...GOOD, date: Temporal.Instant.from("2026-03-01T00:00:01.0001Z"), value: 3 });
    });
    expect(result).toMatchObject({ status: "mapped", points: 2, superseded: 1 });
    expect(result.findings).toContainEqual(expect.objectContaining({ kind: "cutDates", first: { text: first } }));
    expect(elements.flatMap(({ data }) => data)).toEqual([
      { date: "2026-03-01T00:00:00.123Z", value: 2 },
      { date: "2026-03-01T00:00:01Z", value: 3 },
    ]);
  });

  it.each([
    [1, "cut off"],
    [3, "must be quoted"],
  ])("get a hint by their cells: %i where the header has 2", async (cells, hint) => {
    const content = `a,b\n${Array(cells).fill("1").join(",")}\n`;
    const { result } = await mapWith(({ file, eachRow }) => eachRow(file.csv({ columns: true }), () => undefined), {
      content,
    });
    expect(result).toMatchObject({ reason: { hint: expect.stringContaining(hint) } });
  });

  it(
    "are reported with row, column and text when a RowError is thrown in eachRow, and the next row " + "follows",
    async () => {
      const seen: string[] = [];
      const { result } = await mapWith(
        ({ file, eachRow, number, emit }) =>
          eachRow(file.csv({ columns: true }), (row) => {
            seen.push(row["id"] ?? "");
            emit({ ...GOOD, target: { variableId: Number(row["id"]) }, value: number(row["value"] ?? "") });
          }),
        { content: CSV },
      );
      expect(seen).toEqual(["1", "2", "3"]);
      expect(result).toMatchObject({
        status: "failed",
        rejectedCount: 1,
        reason: { place: { row: 3, column: "value", text: "x" } },
      });
    },
  );

  it("end the file with the current row of the loop when the RowError is not caught", async () => {
    const { result } = await mapWith(
      async ({ file, number, emit }) => {
        for await (const rows of file.csv({ columns: true }))
          for (const row of rows) emit({ ...GOOD, value: number(row["value"] ?? "") });
      },
      { content: CSV, rows: "lenient" },
    );
    expect(result).toMatchObject({
      status: "failed",
      reason: { code: "HG-MAP-005", place: { row: 3, column: "value", text: "x" } },
    });
  });

  it("leave the good rows to a lenient run", async () => {
    const { result, elements } = await mapWith(
      ({ emit, reject }) => {
        emit(GOOD);
        reject({ row: 9 }, { column: "status", message: "unknown", hint: "ask" });
      },
      { rows: "lenient" },
    );
    expect(result).toMatchObject({
      status: "mapped",
      points: 1,
      rejectedCount: 1,
      rejected: [{ code: "HG-MAP-005", message: "unknown", hint: "ask", place: { row: 9, column: "status" } }],
    });
    expect(elements).toHaveLength(1);
  });

  it("fail even a lenient run when no row was good", async () => {
    const { result } = await mapWith(({ reject }) => reject({ row: 2 }, "bad"), { rows: "lenient" });
    expect(result).toMatchObject({ status: "failed", reason: { code: "HG-MAP-006", place: { row: 2 } } });
  });

  it("are kept up to a limit and counted beyond it", async () => {
    const { result } = await mapWith(({ reject }) => {
      for (let row = 1; row <= REJECTED_ROWS_MAX + 5; row += 1) reject({ row }, "bad");
    });
    expect(result.rejected).toHaveLength(REJECTED_ROWS_MAX);
    expect(result.rejectedCount).toBe(REJECTED_ROWS_MAX + 5);
  });
});

describe("the reasons of refused rows", () => {
  it("are counted beyond the rows that are kept, without what differs from row to row", async () => {
    const lines = Array.from({ length: 300 }, (_, row) => `${row},${row % 3 === 0 ? `n${row}` : `${row},5`}`);
    const { result } = await mapWith(
      ({ file, eachRow, number, emit }) =>
        eachRow(file.csv({ columns: true }), (row) =>
          emit({
            ...GOOD,
            target: { variableId: number(row["id"] ?? "") },
            value: number(row["value"] ?? ""),
          }),
        ),
      { content: `id,value\n${lines.join("\n")}\n`, rows: "lenient" },
    );
    expect(result.rejectedByReason).toEqual([
      { message: "the row has … cells where the header has …", count: 200 },
      { message: "… is not a number", column: "value", count: 100 },
    ]);
    expect(result.rejected.length).toBeLessThan(300);
  });

  it("are bounded in number, and none is lost from the counts", async () => {
    const { result } = await mapWith(({ reject }) => {
      for (let row = 1; row <= 60; row += 1) reject({ row }, { column: `c${row}`, message: "bad" });
    });
    expect(result.rejectedByReason?.length).toBeLessThanOrEqual(21);
    expect(result.rejectedByReason?.[0]).toEqual({ message: "other reasons", count: 40 });
    expect(result.rejectedByReason?.reduce((sum, { count }) => sum + count, 0)).toBe(60);
  });
});

describe("the share of refused rows that a lenient run tolerates", () => {
  const mapShare = (bad: number, good: number, rejectShare: number) =>
    mapWith(
      ({ emit, reject }) => {
        for (let row = 1; row <= bad; row += 1) {
          reject({ row }, "bad");
          reject({ row }, "bad in another column too");
        }
        // A row of a wide file gives many readings, and is one row all the same.
        for (let row = bad + 1; row <= bad + good; row += 1)
          for (const value of [1, 2, 3]) emit({ ...GOOD, target: { variableId: row * 10 + value }, at: { row } });
      },
      { rows: "lenient", rejectShare },
    );

  it("lets the file through up to it", async () => {
    expect((await mapShare(1, 9, 0.1)).result).toMatchObject({
      status: "mapped",
      points: 27,
      rejectedCount: 2,
    });
  });

  it("pushes nothing above it, with the share and the first reason", async () => {
    const { result, elements } = await mapShare(2, 9, 0.1);
    expect(result).toMatchObject({
      status: "failed",
      reason: {
        code: "HG-MAP-031",
        message: "2 rows were refused, 18.2 % of all, where 10 % are tolerated; the first: bad",
        place: { row: 1 },
      },
    });
    expect(elements).toEqual([]);
  });
});

describe("a value that a mapper throws", () => {
  it.each<[string, unknown, string]>([
    ["an error", new Error("boom"), "threw: boom"],
    ["nothing", undefined, "threw: thrown value undefined"],
    ["an object", { a: 1 }, 'threw: thrown value {"a":1}'],
  ])("fails the file: %s", async (_, thrown, message) => {
    const { result } = await mapWith(() => {
      throw thrown;
    });
    expect(result.status === "failed" && result.reason).toMatchObject({
      code: "HG-MAP-007",
      message: expect.stringContaining(message),
    });
  });

  it(
    "fails the file with message and hint of a FileError, and a RowError outside of rows without a " + "place",
    async () => {
      const file = await mapWith(() => {
        throw new FileError("no header", { hint: "add one", row: 1 });
      });
      expect(file.result).toMatchObject({
        reason: { code: "HG-MAP-015", message: "no header", hint: "add one", place: { row: 1 } },
      });
      const row = await mapWith(() => {
        throw new RowError("bad", { column: "value" });
      });
      expect(row.result).toMatchObject({ reason: { code: "HG-MAP-005", place: { column: "value" } } });
    },
  );
});

/** An endless stream, and the result of reading it. */
export interface EndlessCase {
  readonly name: string;
  readonly reader: "csv" | "csvRows" | "csvHeaderAt" | "lines" | "fixedWidth" | "json" | "ndjson" | "xml" | "text";
  readonly start: string;
  readonly repeat: string;
  /** Expected text of the message. */
  readonly says: string;
}

export interface EndlessResult {
  readonly message: string;
  readonly row?: number | undefined;
  readonly hint?: string | undefined;
}

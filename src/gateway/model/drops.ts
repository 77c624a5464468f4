/** Files at a drop, and how their source is finished. */
export type DropKind = "local" | "sftp" | "ftp" | "http" | "hub";

/** One file as a drop lists it. */
export interface FileEntry {
  /** Relative to the root of the drop, separated by `/`, never leading out of it. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Opaque change token (seconds, milliseconds or text, as the server gives it); compared for equality only. */
  readonly mtime: string;
}

/** The result of a drop's fetch of the bytes of an arrival. */
export interface FetchedFile {
  readonly bytes: number;
  /** SHA-256 of the content, lower-case hexadecimal. */
  readonly sha256: string;
}

export type FinishRule =
  | { readonly action: "leave" }
  | { readonly action: "delete" }
  | {
      readonly action: "archive";
      readonly to: string;
      /** Milliseconds for which archived files stay; for ever when absent. */
      readonly keep?: number | undefined;
    };

/** The decision what to do with a source file, durable in the ledger before the file is touched. */
export type FinishPlan =
  | { readonly action: "leave" }
  /** `tag` distinguishes it from another version of the same size and time. */
  | { readonly action: "delete"; readonly tag?: string }
  /** `to` is the full destination, relative to the drop's root, unique by construction. */
  | { readonly action: "archive"; readonly to: string };

/**
 * `done`: also when done earlier; `changed`: the path now holds other content, which was left; `gone`: no file there.
 */
export type FinishResult = "done" | "changed" | "gone";

/** Faults of a field server, for tests: each may be changed at any time. */
import type { FieldHooks } from "./hooks.ts";

export class FieldFaults {
  /** Cuts the connections when this many bytes of file content were sent; then resets itself. */
  cutAfterBytes: number | null = null;
  /** Called once, just before the connection is cut. */
  onCut: (() => void) | null = null;
  /** Requests get no response. */
  silent = false;
  /** Stops sending, with the connection open, when this many bytes of file content were sent; then resets itself. */
  stallAfterBytes: number | null = null;
  /** Bytes of file content sent so far. */
  bytesSent = 0;
  /** FTP: files cannot be renamed. */
  refusesRename = false;
  /** FTP: replaces a listing; the listing is unchanged when null. */
  sendListing: ((listing: Buffer) => Buffer) | null = null;
  /** SFTP: new connections get another host key. */
  otherHostKey = false;

  readonly hooks: FieldHooks = {
    isSilent: () => this.silent,
    beforeContent: (bytes) => this.#beforeContent(bytes),
    listing: (listing) => this.sendListing?.(listing) ?? listing,
    refusesRename: () => this.refusesRename,
    changesHostKey: () => this.otherHostKey,
  };

  #beforeContent(bytes: number): "send" | "cut" | "stall" {
    if (this.cutAfterBytes !== null) {
      this.cutAfterBytes -= bytes;
      if (this.cutAfterBytes < 0) {
        this.cutAfterBytes = null;
        this.onCut?.();
        this.onCut = null;
        return "cut";
      }
    }
    if (this.stallAfterBytes !== null) {
      this.stallAfterBytes -= bytes;
      if (this.stallAfterBytes < 0) {
        this.stallAfterBytes = null;
        this.silent = true;
        return "stall";
      }
    }
    this.bytesSent += bytes;
    return "send";
  }
}

/** Points at which a test makes a field server misbehave. */
export interface FieldHooks {
  /** Whether requests get no response now. */
  isSilent?(): boolean;
  /**
   * Called before bytes of file content are sent.
   *
   * @returns `send` as usual; `cut` closes the connections; `stall` leaves them open and never sends these bytes.
   */
  beforeContent?(bytes: number): "send" | "cut" | "stall";
  /** FTP: returns the listing that is sent in place of the real one. */
  listing?(listing: Buffer): Buffer;
  /** FTP: whether files cannot be renamed. */
  refusesRename?(): boolean;
  /** SFTP: whether new connections get another host key. */
  changesHostKey?(): boolean;
}

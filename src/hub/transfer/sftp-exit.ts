/** The end of an SFTP channel. */
import type { SFTPWrapper } from "ssh2";

/** Other channels of ssh2 have `exit`; its SFTP channel has only the parts of it. */
type ChannelParts = SFTPWrapper & {
  readonly _protocol: { exitStatus(channel: number, status: number): void };
  readonly outgoing: { readonly id: number; readonly state: string };
};

/** OpenSSH's scp counts a channel that is closed without an exit status as failed. */
export function endInOrder(sftp: SFTPWrapper): void {
  const { _protocol: protocol, outgoing } = sftp as ChannelParts;
  if (outgoing.state === "open") protocol.exitStatus(outgoing.id, 0);
  sftp.end();
}

/** Why a person could not be signed in by a provider. */
export type SignOnFaultKind =
  /** The provider does not answer, or not as it should. */
  | "provider"
  /** This side and the provider do not agree on their settings. */
  | "settings"
  /** The person declined, or the provider does not let that person in. */
  | "declined"
  /** The attempt took too long, was finished before, or began in another browser. */
  | "expired"
  | "unknown-user"
  | "name-taken"
  | "inactive"
  | "no-account";

export class SignOnFault extends Error {
  readonly kind: SignOnFaultKind;

  /** `message` is for the log. */
  constructor(kind: SignOnFaultKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "SignOnFault";
    this.kind = kind;
  }
}

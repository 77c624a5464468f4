/** Entries of the audit trail of an account (an extension of Headgate, `docs/hub-choices.md`, *People*). */

export const AUDIT_ACTIONS = [
  "user.created",
  "user.changed",
  "user.activated",
  "user.deactivated",
  "membership.added",
  "membership.removed",
  "roles.changed",
  "claim.set",
  "claim.removed",
  "password.changed",
  "password.link-sent",
  "password.link-made",
  "password.reset",
  "second-factor.added",
  "second-factor.removed",
  "token.created",
  "token.removed",
  "session.began",
  "session.ended",
  "sessions.ended",
  "invitation.created",
  "invitation.sent",
  "invitation.removed",
  "invitation.accepted",
  "impersonation.began",
  "impersonation.ended",
  "sign-on.linked",
  "subscription.created",
  "subscription.changed",
  "subscription.removed",
  "subscription.resumed",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export const AUDIT_SUBJECTS = ["user", "invitation", "token", "subscription"] as const;
export type AuditSubject = (typeof AUDIT_SUBJECTS)[number];

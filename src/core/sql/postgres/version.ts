/** The oldest PostgreSQL that ledger and hub support. */
export const POSTGRES_LEAST = "PostgreSQL 15 or newer";

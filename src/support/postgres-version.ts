/** The oldest PostgreSQL that ledger and hub are made for. */
export const POSTGRES_LEAST = "PostgreSQL 15 or newer";

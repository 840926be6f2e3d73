// Package migrations embeds the database's schema: one folder of SQL files per dialect, applied in the order of their
// numbers. A file that has been released is never changed.
package migrations

import "embed"

// Postgres is the schema for PostgreSQL.
//
//go:embed postgres/*.sql
var Postgres embed.FS

// SQLite is the same schema for SQLite: times are integers (µs since 1970, UTC), ids are text.
//
//go:embed sqlite/*.sql
var SQLite embed.FS

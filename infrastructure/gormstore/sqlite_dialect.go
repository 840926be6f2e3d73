package gormstore

import (
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"
)

// sqliteDialect teaches GORM to write SQLite's SQL. It has no migrator: the schema comes from the migrations.
type sqliteDialect struct{}

func (sqliteDialect) Name() string { return "sqlite" }

func (sqliteDialect) Initialize(db *gorm.DB) error {
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{
		CreateClauses: []string{"INSERT", "VALUES", "ON CONFLICT", "RETURNING"},
		UpdateClauses: []string{"UPDATE", "SET", "FROM", "WHERE", "RETURNING"},
		DeleteClauses: []string{"DELETE", "FROM", "WHERE", "RETURNING"},
	})
	// A transaction that may write is the only one: there is nothing to lock rows against.
	db.ClauseBuilders["FOR"] = func(clause.Clause, clause.Builder) {}
	return nil
}

func (sqliteDialect) Migrator(*gorm.DB) gorm.Migrator { return nil }

func (sqliteDialect) DataTypeOf(*schema.Field) string { return "" }

func (sqliteDialect) DefaultValueOf(*schema.Field) clause.Expression { return clause.Expr{SQL: "NULL"} }

func (sqliteDialect) BindVarTo(w clause.Writer, _ *gorm.Statement, _ any) { _ = w.WriteByte('?') }

func (sqliteDialect) QuoteTo(w clause.Writer, name string) {
	_ = w.WriteByte('"')
	for _, c := range []byte(name) {
		switch c {
		case '.': // table and column
			_, _ = w.WriteString(`"."`)
		case '"':
			_, _ = w.WriteString(`""`)
		default:
			_ = w.WriteByte(c)
		}
	}
	_ = w.WriteByte('"')
}

func (sqliteDialect) Explain(sql string, vars ...any) string {
	return logger.ExplainSQL(sql, nil, `'`, vars...)
}

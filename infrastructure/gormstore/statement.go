package gormstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// statement is SQL with its arguments, not sent yet. One that could not be built fails when it is sent.
type statement struct {
	sql  string
	args []any
	err  error
}

// write is a statement that need not be sent at once: one that changes a row, or reads what such a one has met.
type write struct {
	statement
	each func(row) error // takes the rows that it answers; nil for none
	miss error           // that there was no such row; nil when any number will do
	busy error           // that another transaction held the row for longer than this one waits
	taken
}

// taken names the "no" to a value that another row has already and that may stand there once.
type taken struct {
	column string // part of the constraint's name, and of what SQLite says
	by     error  // nil: there is no name for it
}

// question is a statement whose rows are waited for.
type question struct {
	statement
	each func(row) error
	busy error // that another transaction held a row for longer than this one waits; nil if that needs no name
}

// builder writes SQL in one dialect. It is GORM in dry-run mode: GORM knows the columns, the quotes and the place
// holders, and never meets a connection; link sends what it has written.
type builder struct {
	db    *gorm.DB
	texts *sync.Map // what GORM has written for the statements that a payment needs, by their names
}

func newBuilder(d gorm.Dialector) (builder, error) {
	db, err := gorm.Open(d, &gorm.Config{
		DryRun: true, SkipDefaultTransaction: true, DisableAutomaticPing: true,
		ConnPool: unconnected{}, Logger: logger.Discard,
	})
	return builder{db, &sync.Map{}}, err
}

func newPostgresBuilder() (builder, error) {
	return newBuilder(postgres.New(postgres.Config{Conn: unconnected{}}))
}

func newSQLiteBuilder() (builder, error) { return newBuilder(sqliteDialect{}) }

// build returns what GORM would have sent.
func (b builder) build(draft func(db *gorm.DB) *gorm.DB) statement {
	drafted := draft(b.db)
	return statement{sql: drafted.Statement.SQL.String(), args: drafted.Statement.Vars, err: drafted.Error}
}

// often is build for a statement that a payment needs: its text is always the same, so GORM writes it once, and from then
// on only the arguments are new. They stand in GORM's order, which is checked when it writes.
func (b builder) often(name string, args []any, draft func(db *gorm.DB) *gorm.DB) statement {
	if text, written := b.texts.Load(name); written {
		return statement{sql: text.(string), args: args}
	}
	s := b.build(draft)
	if s.err == nil && !sameArguments(args, s.args) {
		s.err = fmt.Errorf("gormstore: the arguments of %q are not GORM's: %v, %v", name, args, s.args)
	}
	if s.err == nil {
		b.texts.Store(name, s.sql)
	}
	return s
}

func sameArguments(ours, theirs []any) bool {
	return slices.EqualFunc(ours, theirs, func(a, b any) bool { return reflect.DeepEqual(plain(a), plain(b)) })
}

// plain is an argument as the drivers store it.
func plain(arg any) any {
	if v, ok := arg.(driver.Valuer); ok {
		arg, _ = v.Value()
	}
	if p := reflect.ValueOf(arg); p.Kind() == reflect.Pointer {
		if p.IsNil() {
			return nil
		}
		arg = p.Elem().Interface()
	}
	if b, ok := arg.([]byte); ok && b == nil {
		return nil
	}
	return arg
}

// raw is for SQL that GORM has no words for: it fills in the @names.
func (b builder) raw(text string, named map[string]any) statement {
	return b.build(func(db *gorm.DB) *gorm.DB { return db.Raw(text, named) })
}

// unconnected is the connection of a GORM that only writes SQL.
type unconnected struct{}

var errUnconnected = errors.New("gormstore: a builder sends nothing")

func (unconnected) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, errUnconnected
}

func (unconnected) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errUnconnected
}

func (unconnected) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errUnconnected
}

func (unconnected) QueryRowContext(context.Context, string, ...any) *sql.Row { return nil }

package gormstore

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// statement is SQL with its arguments, not sent yet. One that could not be built fails when it is sent.
type statement struct {
	sql  string
	args []any
	err  error
	together
}

// typed says of which types the parameters are: so the statement may be sent as one with others like it.
func (s statement) typed(types ...string) statement {
	s.types = types
	return s
}

// write is a statement that need not be sent at once: one that changes a row, or reads what such a one has met.
type write struct {
	statement
	each  func(row) error // takes the rows that it answers; nil for none
	met   func(rows int)  // told how many these were, in the end; nil if that is no news
	miss  error           // that there was no such row; nil when any number will do
	busy  error           // that another transaction held the row for longer than this one waits
	holds []any           // what it takes hold of, if nothing has done so before: an order.ID, an idempotency.Scope
	own   bool            // its text fails by itself where a row is missing that must be there
	taken
}

// taken names the "no" to a value that another row has already and that may stand there once.
type taken struct {
	column     string // what SQLite says of it
	constraint string // what PostgreSQL says of it
	by         error  // nil: there is no name for it
}

// question is a statement whose rows are waited for.
type question struct {
	statement
	each  func(row) error
	busy  error      // that another transaction held a row for longer than this one waits; nil if that needs no name
	skips bool       // in its form for many, a row that another transaction holds; then it has to be asked for alone
	undo  *statement // takes back what it has written if it answers a row; nil: it writes nothing
	holds any        // what it takes hold of until the transaction's end, and nothing else: an idempotency.Scope or order.ID
}

// builder writes SQL in one dialect. It is GORM in dry-run mode: GORM knows the columns, the quotes and the place
// holders, and never meets a connection; link sends what it has written.
type builder struct {
	db      *gorm.DB
	texts   *sync.Map // what GORM has written for the statements that a payment needs, by their names
	forMany *sync.Map // what follows from that for several transactions at once, by the text for one
}

func newBuilder(d gorm.Dialector) (builder, error) {
	db, err := gorm.Open(d, &gorm.Config{
		DryRun: true, SkipDefaultTransaction: true, DisableAutomaticPing: true,
		ConnPool: unconnected{}, Logger: logger.Discard,
	})
	return builder{db, &sync.Map{}, &sync.Map{}}, err
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
		s.args = args // as the drivers store them
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

// told hands over the rows that a write answers, as read reads them, and tells how many there were.
func (w write) told(read func(each func(row) error) error) (met int, err error) {
	err = read(func(answer row) error {
		met++
		return w.each(answer)
	})
	if err == nil && w.met != nil {
		w.met(met)
	}
	return met, err
}

// changes are the columns that an update changes.
type changes struct {
	name    string // of the choice of columns
	columns []string
	values  []any
}

// changesOf compares a row's columns with what they are to be. Without what they were before, all are to change.
func changesOf(columns []string, before, after []any) changes {
	c := changes{columns: make([]string, 0, len(columns)), values: make([]any, 0, len(columns)+5)}
	var choice uint64
	for i, column := range columns {
		if before == nil || !sameValue(before[i], after[i]) {
			c.columns, c.values = append(c.columns, column), append(c.values, after[i])
			choice |= 1 << i
		}
	}
	if choice == 0 {
		return changesOf(columns, nil, after) // UPDATE without a column is none
	}
	c.name = strconv.FormatUint(choice, 16)
	return c
}

// sameValue compares two values of one column.
func sameValue(a, b any) bool {
	switch v := a.(type) {
	case []byte:
		w, ok := b.([]byte)
		return ok && (v == nil) == (w == nil) && bytes.Equal(v, w)
	case time.Time:
		w, ok := b.(time.Time)
		return ok && v.Equal(w)
	default:
		return a == b
	}
}

// many is the text of a statement for several transactions. It is written once.
func (b builder) many(s statement) (string, error) {
	if text, written := b.forMany.Load(s.sql); written {
		return text.(string), nil
	}
	text, err := forMany(s.sql, s.together)
	if err == nil {
		b.forMany.Store(s.sql, text)
	}
	return text, err
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

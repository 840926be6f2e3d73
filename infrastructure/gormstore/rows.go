package gormstore

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"kakutei/application/port"
)

// instant is a column of time, UTC. NULL is the zero time. PostgreSQL has timestamptz; SQLite integers, µs since 1970:
// its link converts what goes out (bindSQLite), Scan what comes in.
type instant struct{ time.Time }

// Value implements driver.Valuer.
func (i instant) Value() (driver.Value, error) {
	if i.IsZero() {
		return nil, nil //nolint:nilnil // NULL
	}
	return i.UTC(), nil
}

// Scan implements sql.Scanner.
func (i *instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		i.Time = time.Time{}
	case time.Time:
		i.Time = v.UTC()
	case int64:
		i.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("gormstore: %T is no time", src)
	}
	if y := i.Year(); y < 0 || y > 9999 { // RFC 3339 cannot write it
		return fmt.Errorf("gormstore: a time in the year %d", y)
	}
	return nil
}

// optional is NULL for the zero value.
func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// value is the column as an argument that no driver has to resolve.
func (i instant) value() any {
	if i.IsZero() {
		return nil
	}
	return i.UTC()
}

// nullable is a column that may be NULL as such an argument.
func nullable[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// given is the zero value for NULL.
func given[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// errUnreadable says that a row is there and cannot be what it should.
var errUnreadable = errors.New("cannot be read")

func unreadable(what, id string, err error) error {
	return port.ErrUnavailable.Because(fmt.Errorf("gormstore: %s %s %w: %w", what, id, errUnreadable, err))
}

// columnsIn are the names in a list of columns.
func columnsIn(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
}

// typesOf are the types of columns, text where nothing else is said, and then these.
func typesOf(notText map[string]string, columns []string, more ...string) []string {
	types := make([]string, 0, len(columns)+len(more))
	for _, column := range columns {
		types = append(types, cmp.Or(notText[column], "text"))
	}
	return append(types, more...)
}

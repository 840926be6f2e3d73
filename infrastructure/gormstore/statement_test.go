package gormstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore"
)

// The text comes from GORM, the arguments from us: were they in another order, a name would become an amount.
func TestAKeptStatementWithArgumentsInAnotherOrderThanGORMsIsNotSent(t *testing.T) {
	const text, ours, theirs = "SELECT @a, @b", "first", "second"
	named := map[string]any{"a": ours, "b": theirs}
	texts, err := gormstore.KeptStatement(t, text, named, []any{ours, theirs}, []any{theirs, ours})
	require.NoError(t, err)
	assert.Equal(t, "SELECT $1, $2", texts)

	_, err = gormstore.KeptStatement(t, text, named, []any{theirs, ours}, []any{theirs, ours})
	require.Error(t, err)
}

func TestAnUpdateSendsTheColumnsThatHaveChangedAndNoOthers(t *testing.T) {
	columns := []string{"status", "count", "at", "key", "bytes"}
	at := time.Date(2026, 12, 1, 1, 2, 3, 0, time.UTC)
	before := []any{"PLACED", 1, at, nil, []byte("a")}
	for what, c := range map[string]struct {
		after   []any
		changed []string
		values  []any
	}{
		"one":                      {[]any{"PAID", 1, at, nil, []byte("a")}, columns[:1], []any{"PAID"}},
		"the same time elsewhere":  {[]any{"PLACED", 2, at.In(time.FixedZone("JST", 9*3600)), nil, []byte("a")}, columns[1:2], []any{2}},
		"another time":             {[]any{"PLACED", 1, at.Add(1), nil, []byte("a")}, columns[2:3], []any{at.Add(1)}},
		"no time":                  {[]any{"PLACED", 1, nil, nil, []byte("a")}, columns[2:3], []any{nil}},
		"what was none":            {[]any{"PLACED", 1, at, "k", []byte("a")}, columns[3:4], []any{"k"}},
		"other bytes":              {[]any{"PLACED", 1, at, nil, []byte("b")}, columns[4:], []any{[]byte("b")}},
		"no bytes, which is NULL":  {[]any{"PLACED", 1, at, nil, []byte(nil)}, columns[4:], []any{[]byte(nil)}},
		"empty bytes, which exist": {[]any{"PLACED", 1, at, nil, []byte{}}, columns[4:], []any{[]byte{}}},
		"nothing: all are sent":    {before, columns, before},
	} {
		_, changed, values := gormstore.Changes(columns, before, c.after)
		assert.Equal(t, c.changed, changed, what)
		assert.Equal(t, c.values, values, what)
	}
	_, changed, _ := gormstore.Changes(columns, nil, before)
	assert.Equal(t, columns, changed, "of a row that was not read everything is sent")

	// The text is kept by this name: two choices under one would write a value into another column.
	first, _, _ := gormstore.Changes(columns, before, []any{"PAID", 1, at, nil, []byte("a")})
	second, _, _ := gormstore.Changes(columns, before, []any{"PLACED", 2, at, nil, []byte("a")})
	assert.NotEqual(t, first, second)
}

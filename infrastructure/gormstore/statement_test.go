package gormstore_test

import (
	"testing"

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

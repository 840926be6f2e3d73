package idempotent

import "kakutei/domain/idempotency"

type scope = idempotency.Scope

// For tests of the package's memory of finished records.
var (
	NewFinished = newFinished
)

// Add is add.
func (f *finished) Add(s scope) { f.add(s, "") }

// Has is has.
func (f *finished) Has(s scope) bool { return f.has(s) }

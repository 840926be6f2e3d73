package idempotent

import "kakutei/domain/idempotency"

type scope = idempotency.Scope

// For tests of what the package remembers.
var (
	NewFinished = newFinished
)

// Add is add.
func (f *finished) Add(s scope) { f.add(s, "") }

// Has is has.
func (f *finished) Has(s scope) bool { return f.has(s) }

// Running is how many runs the gate knows.
func (e *Executor) Running() int {
	e.gate.mu.Lock()
	defer e.gate.mu.Unlock()
	return len(e.gate.runs)
}

// Package money is an amount in the smallest unit of its currency. Nothing here knows of fractions, and no sum wraps
// around.
package money

import (
	"errors"
	"fmt"
	"math"
)

// Faults of arithmetic, for errors.Is.
var (
	// ErrOverflow says that a result does not fit into 64 bits.
	ErrOverflow = errors.New("money: the result is too large")
	// ErrCurrencies says that two different currencies met in one sum.
	ErrCurrencies = errors.New("money: different currencies")
)

// Money is a count of minor units (JPY: yen, EUR: cents) of a currency. It is a value: compare it with ==.
type Money struct {
	units    int64
	currency Currency
}

// Of is so many minor units of a currency.
func Of(units int64, currency Currency) Money { return Money{units: units, currency: currency} }

// Units is the count of minor units.
func (m Money) Units() int64 { return m.units }

// Currency is what is counted.
func (m Money) Currency() Currency { return m.currency }

// String is for logs and messages, as in "1000 JPY"; the number counts minor units.
func (m Money) String() string { return fmt.Sprintf("%d %s", m.units, m.currency) }

// Add is the sum. Errors: ErrCurrencies, ErrOverflow.
func (m Money) Add(o Money) (Money, error) {
	if m.currency != o.currency {
		return Money{}, fmt.Errorf("%w: %s and %s", ErrCurrencies, m.currency, o.currency)
	}
	if o.units > 0 && m.units > math.MaxInt64-o.units || o.units < 0 && m.units < math.MinInt64-o.units {
		return Money{}, fmt.Errorf("%w: %d + %d", ErrOverflow, m.units, o.units)
	}
	return Money{m.units + o.units, m.currency}, nil
}

// Times is n times the money. Error: ErrOverflow.
func (m Money) Times(n int64) (Money, error) {
	if m.units == 0 || n == 0 {
		return Money{0, m.currency}, nil
	}
	product := m.units * n
	wrapped := product/n != m.units
	lost := m.units == math.MinInt64 && n == -1 || n == math.MinInt64 && m.units == -1 // their division wraps as well
	if wrapped || lost {
		return Money{}, fmt.Errorf("%w: %d × %d", ErrOverflow, m.units, n)
	}
	return Money{product, m.currency}, nil
}

// MaxUnits is the largest amount that every JSON reader keeps exact, 2^53−1 (RFC 8259 §6). Published amounts stay
// within it.
const MaxUnits int64 = 1<<53 - 1

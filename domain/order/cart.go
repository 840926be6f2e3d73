package order

import (
	"fmt"
	"slices"

	"kakutei/domain/fault"
	"kakutei/domain/money"
)

// Limits of a cart (docs/contract.md, Orders).
const (
	MaxLines     = 200
	MaxQuantity  = 9999
	MaxUnitPrice = money.MaxUnits // minor units
)

// Line is so many pieces of one article.
type Line struct {
	SKU       string
	Name      string
	Quantity  int64
	UnitPrice int64 // minor units of the cart's currency
}

// Cart is what can be ordered: its lines and their total are within the limits. The zero value is not one.
type Cart struct {
	lines []Line
	total money.Money
}

// NewCart checks each line and adds them up. The error is a fault.Invalid that names each line's violations.
func NewCart(currency money.Currency, lines []Line) (Cart, error) {
	if len(lines) < 1 || len(lines) > MaxLines {
		return Cart{}, fault.Invalid(fault.Violation{
			Field: "lines", Detail: fmt.Sprintf("must be 1 to %d lines, not %d", MaxLines, len(lines)),
		})
	}
	var wrong []fault.Violation
	limit := func(i int, name string, value, least, most int64) {
		if value < least || value > most {
			wrong = append(wrong, fault.Violation{
				Field:  fmt.Sprintf("lines/%d/%s", i, name),
				Detail: fmt.Sprintf("must be %d to %d", least, most),
			})
		}
	}
	for i, l := range lines {
		limit(i, "quantity", l.Quantity, 1, MaxQuantity)
		limit(i, "unitPrice", l.UnitPrice, 0, MaxUnitPrice)
	}
	if len(wrong) > 0 {
		return Cart{}, fault.Invalid(wrong...)
	}
	total, err := sum(currency, lines)
	if err != nil || total.Units() < 1 || total.Units() > money.MaxUnits {
		return Cart{}, fault.Invalid(fault.Violation{
			Field: "lines", Detail: fmt.Sprintf("their total must be 1 to %d", money.MaxUnits),
		})
	}
	return Cart{lines: slices.Clone(lines), total: total}, nil
}

func sum(currency money.Currency, lines []Line) (money.Money, error) {
	total := money.Of(0, currency)
	for _, l := range lines {
		price, err := money.Of(l.UnitPrice, currency).Times(l.Quantity)
		if err != nil {
			return money.Money{}, err
		}
		if total, err = total.Add(price); err != nil {
			return money.Money{}, err
		}
	}
	return total, nil
}

// Lines are the cart's lines, in their order.
func (c Cart) Lines() []Line { return slices.Clone(c.lines) }

// Total is the sum of the lines.
func (c Cart) Total() money.Money { return c.total }

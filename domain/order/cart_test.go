package order_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/fault"
	"kakutei/domain/money"
	"kakutei/domain/order"
)

// most is the largest total and the largest unit price (docs/contract.md, Orders).
const most = 9007199254740991

func line(quantity, unitPrice int64) order.Line {
	return order.Line{SKU: "tea", Name: "煎茶", Quantity: quantity, UnitPrice: unitPrice}
}

func TestCartsWithinTheLimits(t *testing.T) {
	for name, c := range map[string]struct {
		lines []order.Line
		total int64
	}{
		"one piece of one yen":        {[]order.Line{line(1, 1)}, 1},
		"two lines":                   {[]order.Line{line(2, 500), line(3, 7)}, 1021},
		"a free article beside":       {[]order.Line{line(1, 0), line(1, 1)}, 1},
		"the largest quantity":        {[]order.Line{line(9999, 1)}, 9999},
		"the largest unit price":      {[]order.Line{line(1, most)}, most},
		"the largest total, in parts": {[]order.Line{line(1, most-1), line(1, 1)}, most},
		"two hundred lines":           {slices.Repeat([]order.Line{line(1, 1)}, 200), 200},
		"the same article twice":      {[]order.Line{line(1, 5), line(1, 5)}, 10},
	} {
		cart, err := order.NewCart(money.JPY, c.lines)
		require.NoError(t, err, name)
		assert.Equal(t, money.Of(c.total, money.JPY), cart.Total(), name)
		assert.Equal(t, c.lines, cart.Lines(), name)
	}
}

func TestCartsBeyondALimitNameEachViolation(t *testing.T) {
	const quantity, unitPrice = "must be 1 to 9999", "must be 0 to 9007199254740991"
	one := func(field, detail string) []fault.Violation { return []fault.Violation{{Field: field, Detail: detail}} }
	sum := fault.Violation{Field: "lines", Detail: "their total must be 1 to 9007199254740991"}
	for name, c := range map[string]struct {
		lines []order.Line
		want  []fault.Violation
	}{
		"no lines": {nil, one("lines", "must be 1 to 200 lines, not 0")},
		"too many lines": {
			slices.Repeat([]order.Line{line(1, 1)}, 201),
			one("lines", "must be 1 to 200 lines, not 201"),
		},
		"no piece":            {[]order.Line{line(0, 1)}, one("lines/0/quantity", quantity)},
		"pieces given back":   {[]order.Line{line(-1, 1)}, one("lines/0/quantity", quantity)},
		"too many pieces":     {[]order.Line{line(10000, 1)}, one("lines/0/quantity", quantity)},
		"a price below zero":  {[]order.Line{line(1, -1)}, one("lines/0/unitPrice", unitPrice)},
		"a price beyond most": {[]order.Line{line(1, most+1)}, one("lines/0/unitPrice", unitPrice)},
		"a price at the end of 64 bits": {
			[]order.Line{line(1, math.MinInt64), line(1, math.MaxInt64)},
			[]fault.Violation{{Field: "lines/0/unitPrice", Detail: unitPrice}, {Field: "lines/1/unitPrice", Detail: unitPrice}},
		},
		"several in several lines": {
			[]order.Line{line(0, -1), line(1, 1), line(10000, 1)},
			[]fault.Violation{
				{Field: "lines/0/quantity", Detail: quantity},
				{Field: "lines/0/unitPrice", Detail: unitPrice},
				{Field: "lines/2/quantity", Detail: quantity},
			},
		},
		"nothing to pay":              {[]order.Line{line(9999, 0)}, []fault.Violation{sum}},
		"a total one too large":       {[]order.Line{line(1, most), line(1, 1)}, []fault.Violation{sum}},
		"a line beyond 64 bits":       {[]order.Line{line(9999, most)}, []fault.Violation{sum}},
		"a line that would wrap to 2": {[]order.Line{line(2322, 7944334226403769)}, []fault.Violation{sum}},
		"a sum beyond 64 bits":        {slices.Repeat([]order.Line{line(1000, most)}, 2), []fault.Violation{sum}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := order.NewCart(money.JPY, c.lines)
			f, isFault := fault.From(err)
			require.True(t, isFault)
			assert.Equal(t, fault.CodeInvalid, f.Code())
			assert.Equal(t, fault.AfterFix, f.Advice())
			assert.Equal(t, c.want, f.Violations())
		})
	}
}

func TestACartIsItsLinesAddedUpOrNoCart(t *testing.T) {
	lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) order.Line {
		return line(
			rapid.OneOf(rapid.Int64Range(1, 9999), rapid.Int64()).Draw(t, "quantity"),
			rapid.OneOf(rapid.Int64Range(0, 1000000), rapid.Int64Range(0, most), rapid.Int64()).Draw(t, "unit price"),
		)
	}), 0, 210)
	rapid.Check(t, func(t *rapid.T) {
		l := lines.Draw(t, "lines")
		legal, total := len(l) >= 1 && len(l) <= 200, new(big.Int)
		for _, x := range l {
			legal = legal && x.Quantity >= 1 && x.Quantity <= 9999 && x.UnitPrice >= 0 && x.UnitPrice <= most
			total.Add(total, new(big.Int).Mul(big.NewInt(x.Quantity), big.NewInt(x.UnitPrice)))
		}
		legal = legal && total.Sign() > 0 && total.Cmp(big.NewInt(most)) <= 0

		cart, err := order.NewCart(money.JPY, l)
		require.Equal(t, legal, err == nil, "%v", err)
		if legal {
			require.Equal(t, money.Of(total.Int64(), money.JPY), cart.Total())
		}
	})
}

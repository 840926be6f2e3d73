package money_test

import (
	"math"
	"math/big"
	"testing"

	oracle "github.com/bojanz/currency"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/money"
)

func TestTheCurrencyTableIsISO4217(t *testing.T) {
	for _, code := range oracle.GetCurrencyCodes() {
		digits, _ := oracle.GetDigits(code)
		c, err := money.ParseCurrency(code)
		require.NoError(t, err, code)
		assert.Equal(t, int(digits), c.MinorUnits(), code)
		assert.Equal(t, code, c.Code())
	}
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			for c := 'A'; c <= 'Z'; c++ {
				code := string([]rune{a, b, c})
				_, err := money.ParseCurrency(code)
				assert.Equal(t, oracle.IsValid(code), err == nil, code)
			}
		}
	}
}

func TestWhatIsNoCurrency(t *testing.T) {
	for _, code := range []string{"", "jpy", "JPy", "JP", "JPYX", "XXX", "XTS", "XAU", "XDR", " JPY", "J\x00Y", "円"} {
		_, err := money.ParseCurrency(code)
		assert.ErrorIs(t, err, money.ErrUnknownCurrency, "%q", code)
	}
}

func TestSumsAgreeWithUnboundedArithmeticOrSayOverflow(t *testing.T) {
	interesting := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{
		0, 1, -1, 2, -2, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1, math.MaxInt64 / 2, math.MinInt64 / 2,
		math.MaxInt32, math.MinInt32, 3037000499, 3037000500,
	}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := interesting.Draw(t, "a"), interesting.Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		agrees := func(what string, want *big.Int, got money.Money, err error) {
			if !want.IsInt64() {
				require.ErrorIs(t, err, money.ErrOverflow, what)
				return
			}
			require.NoError(t, err, what)
			require.Equal(t, money.Of(want.Int64(), money.JPY), got, what)
		}
		sum, err := money.Of(a, money.JPY).Add(money.Of(b, money.JPY))
		agrees("sum", new(big.Int).Add(x, y), sum, err)
		product, err := money.Of(a, money.JPY).Times(b)
		agrees("product", new(big.Int).Mul(x, y), product, err)
	})
}

func TestDifferentCurrenciesHaveNoSum(t *testing.T) {
	eur, err := money.ParseCurrency("EUR")
	require.NoError(t, err)
	_, err = money.Of(1, money.JPY).Add(money.Of(1, eur))
	require.ErrorIs(t, err, money.ErrCurrencies)
	assert.NotEqual(t, money.Of(1, money.JPY), money.Of(1, eur))
	assert.Equal(t, "1 EUR", money.Of(1, eur).String())
}

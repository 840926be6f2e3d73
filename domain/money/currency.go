package money

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknownCurrency says that a text is no active ISO 4217 code with a minor unit.
var ErrUnknownCurrency = errors.New("not an active ISO 4217 code in upper case")

// Currency is an active ISO 4217 code that has a minor unit: so neither metals nor test codes (XAU, XTS, XXX). The zero
// value is no currency.
type Currency struct{ code string }

// JPY is the yen, whose smallest unit is the yen itself.
var JPY = Currency{"JPY"}

// ParseCurrency reads an upper-case code. Error: ErrUnknownCurrency.
func ParseCurrency(code string) (Currency, error) {
	if _, ok := minorUnits[code]; !ok {
		return Currency{}, fmt.Errorf("money: %w: %.16q", ErrUnknownCurrency, code)
	}
	return Currency{code}, nil
}

// Code is the three upper-case letters.
func (c Currency) Code() string { return c.code }

// String is the code.
func (c Currency) String() string { return c.code }

// MinorUnits is how many decimal digits the smallest unit is away from the currency's own: 0 for JPY, 2 for EUR.
func (c Currency) MinorUnits() int { return minorUnits[c.code] }

// minorUnits holds the active codes of ISO 4217 list one by the digits of their minor unit.
var minorUnits = func() map[string]int {
	table := map[string]int{}
	for digits, codes := range map[int]string{
		0: `BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF`,
		2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW
			CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF
			IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK
			MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP
			SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG
			YER ZAR ZMW ZWG`,
		3: `BHD IQD JOD KWD LYD OMR TND`,
		4: `CLF UYW`,
	} {
		for code := range strings.FieldsSeq(codes) {
			table[code] = digits
		}
	}
	return table
}()

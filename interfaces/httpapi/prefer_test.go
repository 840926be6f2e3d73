package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePreferenceForStrictHandling(t *testing.T) { // RFC 7240
	e := onMemory(t)
	e.booking(t, invoice("inv-1"))
	for name, c := range map[string]struct {
		lines  []string
		strict bool
	}{
		"as it is":                     {[]string{`handling=strict`}, true},
		"in quotes":                    {[]string{`handling="strict"`}, true},
		"with an escape":               {[]string{`handling="st\rict"`}, true},
		"its name in another case":     {[]string{`Handling=strict`}, true},
		"with blanks":                  {[]string{"\thandling = strict "}, true},
		"with parameters":              {[]string{`handling=strict; level=9;foo`}, true},
		"with an empty parameter":      {[]string{`handling=strict;`}, true},
		"behind others":                {[]string{`respond-async, wait=10,handling=strict`}, true},
		"before others":                {[]string{`handling=strict, return=minimal`}, true},
		"in a line of its own":         {[]string{`respond-async`, `handling=strict`}, true},
		"behind an empty one":          {[]string{`, ,handling=strict`}, true},
		"behind a quoted comma":        {[]string{`x="a, handling=lenient", handling=strict`}, true},
		"behind a quoted quote":        {[]string{`x="\", handling=lenient", handling=strict`}, true},
		"the first of two":             {[]string{`handling=strict, handling=lenient`}, true},
		"behind a line left open":      {[]string{`x="a`, `handling=strict`}, true},
		"none":                         {nil, false},
		"an empty line":                {[]string{``}, false},
		"without a value":              {[]string{`handling`}, false},
		"with an empty value":          {[]string{`handling=`}, false},
		"lenient":                      {[]string{`handling=lenient`}, false},
		"stricter":                     {[]string{`handling=stricter`}, false},
		"a blank in quotes":            {[]string{`handling=" strict"`}, false},
		"half in quotes":               {[]string{`handling="strict`}, false},
		"an escaped quote":             {[]string{`handling="strict\"`}, false},
		"an escape that is left":       {[]string{`handling="strict\\"`}, false},
		"the second of two":            {[]string{`handling=lenient, handling=strict`}, false},
		"the second, in another line":  {[]string{`handling=lenient`, `handling=strict`}, false},
		"behind one without a value":   {[]string{`handling, handling=strict`}, false},
		"another's value":              {[]string{`strict=handling`}, false},
		"another's parameter":          {[]string{`return=minimal; handling=strict`}, false},
		"a parameter of its own":       {[]string{`handling;handling=strict`}, false},
		"within quotes":                {[]string{`x="handling=strict"`}, false},
		"within quotes, after a comma": {[]string{`x="a, handling=strict"`}, false},
		"the end of another's name":    {[]string{`xhandling=strict`}, false},
		"with more behind it":          {[]string{`handling=strict=1`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := invoice("inv-1").posted()
			r.header["Prefer"] = c.lines
			a := e.send(t, r)
			require.Equal(t, "true", a.header.Get("Idempotent-Replayed"))
			if !c.strict {
				a.is(t, http.StatusOK)
				assert.Empty(t, a.header.Get("Preference-Applied"))
				return
			}
			a.isProblem(t, http.StatusConflict, "duplicate_operation")
			assert.Equal(t, "handling=strict", a.header.Get("Preference-Applied"))
		})
	}
}

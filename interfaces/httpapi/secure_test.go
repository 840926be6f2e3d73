package httpapi

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatOneAnswersHeadersSayMoreOrElseIsInNoOtherAnswer(t *testing.T) {
	fresh := func() http.Header {
		h := http.Header{}
		secure(h)
		notStored.on(h)
		return h
	}
	before := fresh().Clone()
	assert.Len(t, before, 6)
	for name, values := range before {
		one, other := fresh(), fresh()
		one.Add(name, "one")
		other.Add(name, "other")
		assert.Equal(t, append(values[:1:1], "one"), one[name])
		assert.Equal(t, append(values[:1:1], "other"), other[name])
		one.Set(name, "else")
	}
	assert.Equal(t, before, fresh())
}

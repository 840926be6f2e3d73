package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/fault"
)

func TestAFaultIsWhatWasDeclared(t *testing.T) {
	f := fault.New("busy", fault.SameKey, "come back later")
	assert.Equal(t, fault.Code("busy"), f.Code())
	assert.Equal(t, fault.SameKey, f.Advice())
	assert.Equal(t, "come back later", f.Detail())
	assert.Zero(t, f.Wait())
	assert.Empty(t, f.Members())
	assert.Empty(t, f.Violations())
	require.NoError(t, f.Unwrap())
	assert.EqualError(t, f, "busy: come back later")
}

func TestTwoFaultsAreTheSameWhenTheirCodesAre(t *testing.T) {
	busy, other := fault.New("busy", fault.SameKey, "come back later"), fault.New("gone", fault.SameKey, "come back later")
	enriched := fmt.Errorf("at work: %w",
		busy.Because(io.EOF).After(time.Second).With("name", 1).Saying("come back in a second"))
	require.ErrorIs(t, enriched, busy)
	require.ErrorIs(t, busy, fault.New("busy", fault.NewKey, "in other words"))
	require.NotErrorIs(t, enriched, other)
	require.NotErrorIs(t, io.EOF, busy)
	require.NotErrorIs(t, busy, io.EOF)
}

func TestACauseIsFoundAndIsInTheLogOnly(t *testing.T) {
	f := fault.New("unavailable", fault.SameKey, "nothing was done").Because(fmt.Errorf("reading: %w", io.EOF))
	require.ErrorIs(t, f, io.EOF)
	assert.Equal(t, "unavailable: nothing was done: reading: EOF", f.Error())
	assert.Equal(t, "nothing was done", f.Detail())
}

func TestACauseMayBeAnotherFault(t *testing.T) {
	inner := fault.New("lost", fault.SameKey, "lost")
	outer := fault.New("unknown", fault.NewKey, "unknown").Because(inner)
	require.ErrorIs(t, outer, inner)
	f, isFault := fault.From(fmt.Errorf("twice: %w", outer))
	require.True(t, isFault)
	assert.Same(t, outer, f, "the outermost one speaks to the caller")
}

func TestACopyIsEnrichedAndTheOriginalStays(t *testing.T) {
	original := fault.New("busy", fault.SameKey, "come back later").With("first", 1)
	for name, change := range map[string]func() *fault.Fault{
		"Because": func() *fault.Fault { return original.Because(io.EOF) },
		"After":   func() *fault.Fault { return original.After(time.Second) },
		"With":    func() *fault.Fault { return original.With("second", 2) },
		"Saying":  func() *fault.Fault { return original.Saying("come back at %d", 9) },
	} {
		changed := change()
		assert.NotSame(t, original, changed, name)
		assert.NotEqual(t, original, changed, name)
		assert.Equal(t, original.Code(), changed.Code(), name)
		assert.Equal(t, original.Advice(), changed.Advice(), name)
	}
	assert.Equal(t, fault.New("busy", fault.SameKey, "come back later").With("first", 1), original)
}

func TestEachMethodAddsItsOwn(t *testing.T) {
	f := fault.New("busy", fault.SameKey, "come back later").
		With("first", 1).With("second", "two").After(time.Second).Saying("come back at %d %%", 9).Because(io.EOF)
	assert.Equal(t, []fault.Member{{Name: "first", Value: 1}, {Name: "second", Value: "two"}}, f.Members())
	assert.Equal(t, time.Second, f.Wait())
	assert.Equal(t, "come back at 9 %", f.Detail())
	assert.Equal(t, io.EOF, f.Unwrap())
}

func TestTwoCopiesShareNothing(t *testing.T) {
	original := fault.New("busy", fault.SameKey, "").With("a", 1).With("b", 2).With("c", 3) // with room to append into
	left, right := original.With("d", "left"), original.With("d", "right")
	assert.Equal(t, "left", left.Members()[3].Value)
	assert.Equal(t, "right", right.Members()[3].Value)

	left.Members()[0].Value = "changed from outside"
	assert.Equal(t, 1, left.Members()[0].Value)
}

func TestInvalidNamesWhatIsWrong(t *testing.T) {
	violations := []fault.Violation{
		{Field: "lines/0/quantity", Detail: "must be 1 to 9999"}, {Field: "currency", Detail: "is missing"},
	}
	f := fault.Invalid(violations...)
	violations[0].Detail = "changed from outside"

	assert.Equal(t, fault.CodeInvalid, f.Code())
	assert.Equal(t, fault.Code("invalid_request"), f.Code())
	assert.Equal(t, fault.AfterFix, f.Advice())
	assert.Equal(t, "lines/0/quantity: must be 1 to 9999", f.Detail(), "the first one, for people")
	assert.Equal(t, []fault.Violation{
		{Field: "lines/0/quantity", Detail: "must be 1 to 9999"}, {Field: "currency", Detail: "is missing"},
	}, f.Violations())

	f.Violations()[0].Detail = "changed from outside"
	assert.Equal(t, "must be 1 to 9999", f.Violations()[0].Detail)
	assert.Equal(t, f.Violations(), f.With("error", "x").Violations(), "a copy keeps them")
}

func TestInvalidAsAWhole(t *testing.T) {
	assert.Equal(t, "not JSON", fault.Invalid(fault.Violation{Detail: "not JSON"}).Detail())
	assert.Equal(t, "the request is not valid", fault.Invalid().Detail())
	assert.Empty(t, fault.Invalid().Violations())
}

// The advice alone decides what goes on record (docs/adr/0003).
func TestExactlyTheFaultsThatAdviseANewKeyAreRefusals(t *testing.T) {
	for advice, want := range map[fault.Advice]bool{
		fault.NewKey: true, fault.SameKey: false, fault.AfterFix: false, fault.Never: false,
	} {
		f := fault.New("code", advice, "detail")
		got, isRefusal := fault.Refusal(fmt.Errorf("wrapped: %w", f))
		assert.Equal(t, want, isRefusal, advice)
		assert.Same(t, f, got, advice)
	}
}

func TestWhatIsNoFaultIsNoRefusal(t *testing.T) {
	for _, err := range []error{nil, io.EOF, fmt.Errorf("reading: %w", io.EOF), errors.Join(io.EOF, io.ErrNoProgress)} {
		_, isFault := fault.From(err)
		assert.False(t, isFault, "%v", err)
		_, isRefusal := fault.Refusal(err)
		assert.False(t, isRefusal, "%v", err)
	}
}

func TestARefusalBehindAnAccidentIsNone(t *testing.T) {
	refusal := fault.New("amount_mismatch", fault.NewKey, "other money")
	_, isRefusal := fault.Refusal(fault.New("outcome_unknown", fault.SameKey, "unknown").Because(refusal))
	assert.False(t, isRefusal, "the outermost advice counts")
}

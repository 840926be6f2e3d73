package idempotency_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/idempotency"
)

func requestOf(fields []idempotency.Field) (r idempotency.Request) {
	for _, f := range fields {
		r = r.With(f.Name, f.Value)
	}
	return r
}

// fieldLists draws what could be mistaken for a neighbour: digits, colons, empty and repeated names, any bytes.
var fieldLists = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) idempotency.Field {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "1", ":", "1:", "1:a", "0:", "11:", "amount", "煎茶", "\x00", "\xff"}),
		rapid.StringMatching(`[0-3:a]{0,6}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 120), func(b []byte) string { return string(b) }),
	)
	return idempotency.Field{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")}
}), 0, 6)

func TestARequestIsItsFieldsBehindTheirLengths(t *testing.T) {
	r := idempotency.Request("").With("amount", "1000").With("reason", "").With("name", "煎茶")
	assert.Equal(t, idempotency.Request("6:amount4:10006:reason0:4:name6:煎茶"), r, "lengths count bytes")
}

func TestARequestIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := fieldLists.Draw(t, "fields")
		got, err := requestOf(fields).Fields()
		require.NoError(t, err)
		require.True(t, slices.Equal(fields, got), "%q is not %q", got, fields)
	})
}

func TestRepeatedNamesStayApartAndInOrder(t *testing.T) {
	fields := []idempotency.Field{
		{Name: "sku", Value: "tea"},
		{Name: "quantity", Value: "2"},
		{Name: "sku", Value: "bag"},
		{Name: "quantity", Value: "1"},
	}
	got, err := requestOf(fields).Fields()
	require.NoError(t, err)
	assert.Equal(t, fields, got)
}

func TestTwoDifferentRequestsNeverShareATextNorAFingerprint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := fieldLists.Draw(t, "fields")
		b := rapid.OneOf(fieldLists, rapid.Permutation(a)).Draw(t, "other fields")
		same := slices.Equal(a, b)
		require.Equal(t, same, requestOf(a) == requestOf(b))
		require.Equal(t, same,
			idempotency.FingerprintOf(scope, requestOf(a)) == idempotency.FingerprintOf(scope, requestOf(b)))
	})
}

func TestWithLeavesTheRequestAsItWas(t *testing.T) {
	short := idempotency.Request("").With("a", "1")
	left, right := short.With("b", "left"), short.With("b", "right")
	assert.Equal(t, idempotency.Request("1:a1:1"), short)
	assert.Equal(t, idempotency.Request("1:a1:11:b4:left"), left)
	assert.Equal(t, idempotency.Request("1:a1:11:b5:right"), right)
}

func TestWhatIsNoStoredRequest(t *testing.T) {
	for _, text := range []idempotency.Request{
		":", "a", "1", "1:", "1:a", "1:a1:", "1:a1", "1:a2:1", "1:a1:1x", "1:a1:12", "1:a1:11:b", "-1:a1:1", "+1:a1:1",
		"01:a1:1", " 1:a1:1", "1 :a1:1", "1:a1:1 ", "1:a1:1\n", "0x1:a1:1", "1_0:aaaaaaaaaa1:1", "１:a1:1",
		"99999999999999999999:a1:1", "9223372036854775807:a1:1",
	} {
		fields, err := text.Fields()
		require.ErrorIs(t, err, idempotency.ErrUnreadableRequest, "%q", text)
		assert.Nil(t, fields, "%q", text)
	}
}

func FuzzRequestIsReadInOneWayOnly(f *testing.F) {
	for _, seed := range []string{"", "1:a1:1", "6:amount4:1000", "0:0:", "01:a1:1", "1:a1:11:b2::1", "3:1:a1:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fields, err := idempotency.Request(text).Fields()
		if err != nil {
			require.ErrorIs(t, err, idempotency.ErrUnreadableRequest)
			return
		}
		require.Equal(t, idempotency.Request(text), requestOf(fields), "no second text says the same")
	})
}

// The golden values come from another tool:
//
//	printf '%s' '9:operation14:ConfirmPayment5:actor5:alice5:order3:o-16:amount4:10008:currency3:JPY' | sha256sum
//	printf '%s' '9:operation14:ConfirmPayment5:actor5:alice' | sha256sum
//	printf '%s' '9:operation10:PlaceOrder5:actor3:鍵4:name6:煎茶' | sha256sum
func TestTheFingerprintIsOfOperationActorAndRequest(t *testing.T) {
	payment := idempotency.Request("").With("order", "o-1").With("amount", "1000").With("currency", "JPY")
	for _, c := range []struct {
		operation idempotency.Operation
		actor     string
		request   idempotency.Request
		want      idempotency.Fingerprint
	}{
		{"ConfirmPayment", "alice", payment, "v1:38e770ebc8d8276f8db7eed116f79c8b87d130f1ae3da539ae5739178e454b03"},
		{"ConfirmPayment", "alice", "", "v1:302c804d53ddbfe2d8222ac67e346072c8f522709ef95c6f6379b15823e7fc1c"},
		{
			"PlaceOrder", "鍵", idempotency.Request("").With("name", "煎茶"),
			"v1:623648980ca6c1dd94e14b7ebb35c81d54b938a59360d1593fa2ba0c567d01b6",
		},
	} {
		s := idempotency.Scope{Operation: c.operation, Actor: c.actor, Key: "key"}
		assert.Equal(t, c.want, idempotency.FingerprintOf(s, c.request))
	}
}

func TestOperationAndActorArePartOfTheFingerprintAndTheKeyIsNot(t *testing.T) {
	of := func(operation idempotency.Operation, actor string, key idempotency.Key) idempotency.Fingerprint {
		return idempotency.FingerprintOf(idempotency.Scope{Operation: operation, Actor: actor, Key: key}, asked)
	}
	stands := of("ConfirmPayment", "alice", "key")
	assert.NotEqual(t, stands, of("CancelOrder", "alice", "key"))
	assert.NotEqual(t, stands, of("ConfirmPayment", "bob", "key"))
	assert.NotEqual(t, of("Confirm", "Paymentalice", "key"), of("ConfirmPayment", "alice", "key"))
	assert.Equal(t, stands, of("ConfirmPayment", "alice", "other"), "the key names the intent, it is no part of it")
}

func TestAnotherActorsRecordIsOfAnotherRequest(t *testing.T) {
	running := holder.Opened(opened, lease)
	for _, s := range []idempotency.Scope{
		{Operation: "CancelOrder", Actor: "alice", Key: "key"}, {Operation: "ConfirmPayment", Actor: "bob", Key: "key"},
	} {
		n := idempotency.Reservation{Scope: s, Request: asked, Token: "second"}
		assert.Equal(t, idempotency.Reused, running.Judge(n, opened), s)
	}
}

func TestAFieldLeftOutDiffersFromAnEmptyOne(t *testing.T) {
	without := idempotency.Request("").With("order", "o-1")
	with := without.With("method", "")
	assert.NotEqual(t, idempotency.FingerprintOf(scope, without), idempotency.FingerprintOf(scope, with))
}

func TestALongFieldIsReadWhole(t *testing.T) {
	long := strings.Repeat("x:1", 100000)
	fields, err := idempotency.Request("").With("reason", long).With("amount", "1").Fields()
	require.NoError(t, err)
	assert.Equal(t, []idempotency.Field{{Name: "reason", Value: long}, {Name: "amount", Value: "1"}}, fields)
}

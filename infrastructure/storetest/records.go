package storetest

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
)

// operation is the use case of records that are handled by hand.
const operation idempotency.Operation = "ConfirmPayment"

var records = []check{
	{"a reservation's record is stored as it was opened", func(t *testing.T, s Opened) {
		n := reservation("k")
		var opened idempotency.Record
		do(t, s.Work, func(tx port.Tx) (err error) {
			opened, err = tx.Records().Reserve(t.Context(), n, 30*time.Second)
			assert.Equal(t, n.Opened(tx.Now(), 30*time.Second), opened)
			return err
		})
		stands, err := RecordIn(t.Context(), s.Beside, n.Scope)
		require.NoError(t, err)
		assert.Equal(t, opened, stands)
	}},
	{"a second reservation finds what stands, whatever its request and whoever holds it", func(t *testing.T, s Opened) {
		first := reserved(t, s.Work, reservation("k"))
		other := reservation("k")
		other.Request = "5:other1:1"
		assert.Equal(t, first, reserved(t, s.Beside, other))
	}},
	{"a record that is in progress is replaced by its holder's token alone", func(t *testing.T, s Opened) {
		stands := reserved(t, s.Work, reservation("k"))
		stranger, finished, elsewhere := stands, stands, stands
		stranger.Token = idempotency.NewToken()
		finished.Status = idempotency.Succeeded
		elsewhere.Key = "another"
		for name, old := range map[string]idempotency.Record{
			"another token": stranger, "another status": finished, "no record": elsewhere,
		} {
			err := s.Beside.Do(t.Context(), port.Fully, func(tx port.Tx) error {
				return tx.Records().Replace(t.Context(), old, old.Abandoned(tx.Now()))
			})
			require.ErrorIs(t, err, idempotency.ErrLost, name)
			now, err := RecordIn(t.Context(), s.Work, stands.Scope)
			require.NoError(t, err)
			assert.Equal(t, stands, now, name)
		}
	}},
	{"who has lost the record loses all that he wrote beside it", func(t *testing.T, s Opened) {
		o := added(t, s.Work)
		held := reserved(t, s.Work, reservation("k"))
		do(t, s.Beside, func(tx port.Tx) error {
			return tx.Records().Replace(t.Context(), held, held.TakenBy(reservation("k"), tx.Now(), time.Minute))
		})
		err := s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			if err := changing(t, o, paying("k"))(tx); err != nil {
				return err
			}
			return tx.Records().Replace(t.Context(), held, held.Completed(success, tx.Now(), time.Hour))
		})
		require.ErrorIs(t, err, idempotency.ErrLost)
		assert.Equal(t, o.State().Status, orderIn(t, s.Beside, o.State().ID).Status)
	}},
	{"a finished record keeps its outcome to the last byte, and nothing of its request", func(t *testing.T, s Opened) {
		refused, created := success, success
		refused.Refusal, created.Created = "payment_declined", "0193a1b2-0000-7000-8000-000000000000"
		for key, outcome := range map[idempotency.Key]idempotency.Outcome{
			"plain": success, "refused": refused, "created": created,
		} {
			want := finished(t, s.Work, reservation(key), outcome, instant(time.Microsecond), time.Hour)
			got, err := RecordIn(t.Context(), s.Beside, want.Scope)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Empty(t, got.Request)
		}
	}},
	// C41: no JSON type, no character set and no line end comes between what was sent and what is replayed.
	{"a document comes back byte by byte", func(t *testing.T, s Opened) {
		large := make([]byte, 64<<10)
		for i := range large {
			large[i] = byte(rand.Uint32())
		}
		for key, document := range map[idempotency.Key][]byte{
			"zero": {0}, "markup": []byte(`{"id":"o<&>\"é"}`), "broken": {0xff, 0xfe, 0xc3, 0x28},
			"blanks": []byte("{ \"b\":1,\t\"a\" : 1.0e2, \"a\":2 }\r\n"), "escapes": []byte(`\x00\\'"%s`),
			"every": everyByte(), "large": large,
		} {
			outcome := idempotency.Outcome{Document: document}
			want := finished(t, s.Work, reservation(key), outcome, instant(0), time.Hour)
			got, err := RecordIn(t.Context(), s.Beside, want.Scope)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(document, got.Outcome.Document), key)
		}
	}},
	{"a request comes back byte by byte", func(t *testing.T, s Opened) {
		for key, request := range map[idempotency.Key]idempotency.Request{
			"none": "", "text": idempotency.Request("").With("name", "煎茶 |:'\\\n").With("empty", ""),
			"every": idempotency.Request("").With("bytes", string(everyByte())),
			"large": idempotency.Request("").With("name", strings.Repeat("茶", 20_000)),
		} {
			n := reservation(key)
			n.Request = request
			reserved(t, s.Work, n)
			got, err := RecordIn(t.Context(), s.Beside, n.Scope)
			require.NoError(t, err)
			assert.Equal(t, request, got.Request, key)
			assert.Equal(t, idempotency.FingerprintOf(n.Scope, request), got.Fingerprint)
		}
	}},
	{"every time comes back to the microsecond, in UTC", func(t *testing.T, s Opened) {
		held := reserved(t, s.Work, reservation("k"))
		for _, at := range []time.Time{
			instant(0), instant(time.Microsecond), time.Date(2099, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
			time.Date(2027, 3, 28, 1, 30, 0, 1000, time.UTC), // where clocks are put forward
		} {
			want := held
			want.LeaseEnds = at
			do(t, s.Work, func(tx port.Tx) error { return tx.Records().Replace(t.Context(), held, want) })
			got, err := RecordIn(t.Context(), s.Beside, held.Scope)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		}
		want := finished(t, s.Work, reservation("done"), success, instant(7*time.Microsecond), 24*time.Hour)
		got, err := RecordIn(t.Context(), s.Beside, want.Scope)
		require.NoError(t, err)
		assert.Equal(t, instant(7*time.Microsecond), got.CompletedAt)
		assert.Equal(t, instant(24*time.Hour+7*time.Microsecond), got.ExpiresAt)
	}},
	{"what a caller does to his copy of a document changes nothing that is stored", func(t *testing.T, s Opened) {
		document := []byte(`{"status":"PAID"}`)
		want := finished(t, s.Work, reservation("k"), idempotency.Outcome{Document: document}, instant(0), time.Hour)
		document[0] = 'X'
		got, err := RecordIn(t.Context(), s.Work, want.Scope)
		require.NoError(t, err)
		got.Outcome.Document[1] = 'X'
		again, err := RecordIn(t.Context(), s.Beside, want.Scope)
		require.NoError(t, err)
		assert.JSONEq(t, `{"status":"PAID"}`, string(again.Outcome.Document))
	}},
	// C39: three columns, never one joined string.
	{"scopes whose parts join to the same text are apart", func(t *testing.T, s Opened) {
		apart(t, s, []idempotency.Scope{
			{Operation: operation, Actor: "u1::x", Key: "k"},
			{Operation: operation, Actor: "u1", Key: "x::k"},
			{Operation: operation, Actor: "u1|x", Key: "k"},
			{Operation: operation, Actor: "u1", Key: "x|k"},
			{Operation: operation, Actor: "u1:x", Key: "k"},
			{Operation: operation, Actor: "u1", Key: "x:k"},
			{Operation: operation, Actor: "u1/x", Key: "k"},
			{Operation: operation, Actor: "u1", Key: "x/k"},
			{Operation: operation, Actor: "ux", Key: "k"},
			{Operation: operation, Actor: "u", Key: "xk"},
		})
	}},
	{"one key is another record for another operation and another actor", func(t *testing.T, s Opened) {
		apart(t, s, []idempotency.Scope{
			{Operation: operation, Actor: alice, Key: "k"},
			{Operation: "CancelOrder", Actor: alice, Key: "k"},
			{Operation: operation, Actor: "bob", Key: "k"},
			{Operation: operation, Actor: "Alice", Key: "k"},
		})
	}},
	// C33: nothing is truncated, folded or trimmed.
	{"keys that differ in case, in their last character or at length 255 are apart", func(t *testing.T, s Opened) {
		long := strings.Repeat("k", idempotency.MaxKeyLength-1)
		var scopes []idempotency.Scope
		for _, key := range []string{
			"key", "KEY", "Key", "key.", "key%", "key_", "ke_", "key0", "key00", "0", "00", "0.0", "null",
			long, long + "a", long + "b",
		} {
			scopes = append(scopes, idempotency.Scope{Operation: operation, Actor: alice, Key: idempotency.Key(key)})
		}
		apart(t, s, scopes)
	}},
	{"every visible character can stand in a key and in an actor", func(t *testing.T, s Opened) {
		var visible strings.Builder
		for c := byte(0x21); c <= 0x7e; c++ {
			visible.WriteByte(c)
		}
		apart(t, s, []idempotency.Scope{
			{Operation: operation, Actor: visible.String(), Key: idempotency.Key(visible.String())},
			{Operation: operation, Actor: visible.String(), Key: "k"},
		})
	}},
	{"an expired record is read and reserved like any other: who asks judges it", func(t *testing.T, s Opened) {
		want := finished(t, s.Work, reservation("k"), success, instant(-48*time.Hour), time.Hour)
		found, err := RecordIn(t.Context(), s.Beside, want.Scope)
		require.NoError(t, err)
		assert.Equal(t, want, found)
		assert.Equal(t, want, reserved(t, s.Beside, reservation("k")))
	}},
	{"a locked record is nobody else's to change until the transaction ends", func(t *testing.T, s Opened) {
		held := reserved(t, s.Work, reservation("k"))
		release := hold(t, s.Work, func(tx port.Tx) error {
			stands, err := tx.Records().Lock(t.Context(), held.Scope)
			assert.Equal(t, held.Token, stands.Token)
			return err
		})
		err := s.Beside.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
			return tx.Records().Replace(t.Context(), held, held.Abandoned(tx.Now()))
		})
		told(t, err, s.busy(idempotency.ErrInProgress))
		err = s.Beside.Do(t.Context(), port.Briefly, func(tx port.Tx) error {
			_, err := tx.Records().Lock(t.Context(), held.Scope)
			return err
		})
		told(t, err, s.busy(idempotency.ErrInProgress))
		stands, err := RecordIn(t.Context(), s.Beside, held.Scope)
		require.NoError(t, err, "readers do not wait")
		assert.Equal(t, held, stands)
		release()
		do(t, s.Beside, func(tx port.Tx) error {
			_, err := tx.Records().Lock(t.Context(), held.Scope)
			return err
		})
	}},
	{"there is nothing to lock where there is no record", func(t *testing.T, s Opened) {
		require.ErrorIs(t, s.Work.Do(t.Context(), port.Fully, func(tx port.Tx) error {
			_, err := tx.Records().Lock(t.Context(), reservation("k").Scope)
			return err
		}), idempotency.ErrNotFound)
	}},
}

// success is the outcome of a payment.
var success = idempotency.Outcome{Document: []byte(`{"status":"PAID"}`)}

// reservation is alice's, under a token of its own.
func reservation(key idempotency.Key) idempotency.Reservation {
	return idempotency.Reservation{
		Scope:   idempotency.Scope{Operation: operation, Actor: alice, Key: key},
		Request: idempotency.Request("").With("amount", "1000"),
		Token:   idempotency.NewToken(),
	}
}

// reserved is the record that stands after the reservation; a new one's lease is a minute.
func reserved(t *testing.T, w port.UnitOfWork, n idempotency.Reservation) (stands idempotency.Record) {
	t.Helper()
	do(t, w, func(tx port.Tx) (err error) {
		stands, err = tx.Records().Reserve(t.Context(), n, time.Minute)
		return err
	})
	return stands
}

// finished is a stored record with its outcome.
func finished(
	t *testing.T, w port.UnitOfWork, n idempotency.Reservation, o idempotency.Outcome,
	at time.Time, retention time.Duration,
) (done idempotency.Record) {
	t.Helper()
	do(t, w, func(tx port.Tx) error {
		held, err := tx.Records().Reserve(t.Context(), n, time.Minute)
		if err != nil {
			return err
		}
		done = held.Completed(o, at, retention)
		done.Outcome.Document = bytes.Clone(o.Document)
		return tx.Records().Replace(t.Context(), held, held.Completed(o, at, retention))
	})
	return done
}

// apart shows that each scope has a record of its own.
func apart(t *testing.T, s Opened, scopes []idempotency.Scope) {
	t.Helper()
	tokens := map[idempotency.Scope]idempotency.Token{}
	for _, scope := range scopes {
		n := idempotency.Reservation{Scope: scope, Request: "1:a1:b", Token: idempotency.NewToken()}
		tokens[scope] = n.Token
		assert.Equal(t, n.Token, reserved(t, s.Work, n).Token, "%+v", scope)
	}
	for scope, token := range tokens {
		stands, err := RecordIn(t.Context(), s.Beside, scope)
		require.NoError(t, err)
		assert.Equal(t, scope, stands.Scope)
		assert.Equal(t, token, stands.Token, "%+v", scope)
	}
}

func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

package idempotency_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/idempotency"
)

const (
	lease     = 30 * time.Second
	retention = 24 * time.Hour
	tick      = time.Microsecond // the store's finest difference
)

var (
	scope = idempotency.Scope{Operation: "ConfirmPayment", Actor: "alice", Key: "key"}
	asked = idempotency.Request("").With("order", "o-1").With("amount", "1000")
	other = idempotency.Request("").With("order", "o-1").With("amount", "2000")

	holder = idempotency.Reservation{Scope: scope, Request: asked, Token: "holder"}
	opened = time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	ends   = opened.Add(lease)

	completed = opened.Add(2 * time.Second)
	expires   = completed.Add(retention)

	success = idempotency.Outcome{Document: []byte(`{"status":"PAID"}`)}
	refusal = idempotency.Outcome{Refusal: "payment_declined", Document: []byte(`{"code":"payment_declined"}`)}
)

func comes(token idempotency.Token, r idempotency.Request) idempotency.Reservation {
	return idempotency.Reservation{Scope: scope, Request: r, Token: token}
}

// docs/state-machine.md, with the edges of each time.
func TestWhatARequestMayDoAboutTheRecord(t *testing.T) {
	running := holder.Opened(opened, lease)
	succeeded := running.Completed(success, completed, retention)
	failed := running.Completed(refusal, completed, retention)
	const (
		mine, vacant, busy = idempotency.Mine, idempotency.Vacant, idempotency.Busy
		done, reused       = idempotency.Done, idempotency.Reused
	)
	for _, c := range []struct {
		record idempotency.Record
		token  idempotency.Token
		asks   idempotency.Request
		now    time.Time
		want   idempotency.Verdict
	}{
		{running, "holder", asked, opened, mine}, // a repeat in doubt
		{running, "holder", asked, ends.Add(-tick), mine},
		{running, "holder", asked, ends, mine}, // nobody took it over meanwhile
		{running, "holder", asked, ends.Add(time.Hour), mine},

		{running, "second", asked, opened, busy},
		{running, "second", asked, ends.Add(-tick), busy},
		{running, "second", asked, ends, vacant}, // to take over
		{running, "second", asked, ends.Add(tick), vacant},
		{running, "second", asked, ends.AddDate(1, 0, 0), vacant}, // in progress never expires
		{running, "second", asked, opened.Add(-time.Hour), busy},  // by a clock that is behind

		// The fingerprint comes first in every state: also while running and after the lease (C05).
		{running, "second", other, opened, reused},
		{running, "second", other, ends.Add(-tick), reused},
		{running, "second", other, ends, reused},
		{running, "second", other, ends.AddDate(1, 0, 0), reused},

		{succeeded, "second", asked, completed, done},
		{succeeded, "second", asked, ends, done}, // the lease has nothing to say any more
		{succeeded, "second", asked, expires.Add(-tick), done},
		{succeeded, "second", other, completed, reused},
		{succeeded, "second", other, expires.Add(-tick), reused},
		{succeeded, "holder", asked, completed, done}, // a commit in doubt that was made after all
		{succeeded, "holder", asked, expires.Add(-tick), done},

		{failed, "second", asked, completed, done}, // a refusal is as final as a success
		{failed, "second", asked, expires.Add(-tick), done},
		{failed, "second", other, completed, reused},
		{failed, "second", other, expires.Add(-tick), reused},
		{failed, "holder", asked, completed, done},

		// Expired is absent, swept or not, whoever asks for whatever (C85).
		{succeeded, "second", asked, expires, vacant},
		{succeeded, "second", other, expires, vacant},
		{succeeded, "holder", asked, expires, vacant},
		{succeeded, "second", asked, expires.Add(tick), vacant},
		{failed, "second", asked, expires, vacant},
		{failed, "second", other, expires, vacant},
		{failed, "second", other, expires.AddDate(1, 0, 0), vacant},
	} {
		name := fmt.Sprintf("%s, %s asks %q at +%s", c.record.Status, c.token, c.asks, c.now.Sub(opened))
		assert.Equal(t, c.want, c.record.Judge(comes(c.token, c.asks), c.now), name)
	}
}

func TestTheInstantCountsAndNotItsZone(t *testing.T) {
	running := holder.Opened(opened, lease)
	tokyo := time.FixedZone("JST", 9*60*60)
	assert.Equal(t, idempotency.Busy, running.Judge(comes("second", asked), ends.Add(-tick).In(tokyo)))
	assert.Equal(t, idempotency.Vacant, running.Judge(comes("second", asked), ends.In(tokyo)))
}

func TestARecordOfAnUnknownVersionIsOfNoRequest(t *testing.T) {
	running := holder.Opened(opened, lease)
	digest := running.Fingerprint[len("v1:"):]
	for _, unknown := range []idempotency.Fingerprint{
		"", "v1", "v1:", ":", digest, "v0:" + digest, "v2:" + digest, "V1:" + digest, " v1:" + digest,
		"v1:" + digest + " ", "v1:v1:" + digest, "v1:" + digest[1:],
	} {
		r := running
		r.Fingerprint = unknown
		assert.Equal(t, idempotency.Reused, r.Judge(comes("second", asked), opened), "%q", unknown)
		assert.Equal(t, idempotency.Mine, r.Judge(holder, opened), "%q: its own holder goes on", unknown)
	}
}

func TestExpiryIsOfFinishedRecordsOnly(t *testing.T) {
	running := holder.Opened(opened, lease)
	assert.False(t, running.ExpiredAt(opened.AddDate(10, 0, 0)))
	for _, o := range []idempotency.Outcome{success, refusal} {
		finished := running.Completed(o, completed, retention)
		assert.False(t, finished.ExpiredAt(expires.Add(-tick)))
		assert.True(t, finished.ExpiredAt(expires))
	}
}

func TestANewRecord(t *testing.T) {
	assert.Equal(t, idempotency.Record{
		Scope: scope, Fingerprint: idempotency.FingerprintOf(scope, asked), Request: asked, Token: "holder",
		Status: idempotency.InProgress, Executions: 1, CreatedAt: opened, LeaseEnds: ends,
	}, holder.Opened(opened, lease))
}

func TestATakeoverIsTheNextExecutionOfTheSameIntent(t *testing.T) {
	running := holder.Opened(opened, lease)
	now := ends.Add(time.Minute)
	want := running
	want.Token, want.Executions, want.LeaseEnds = "second", 2, now.Add(lease)

	assert.Equal(t, want, running.TakenBy(comes("second", asked), now, lease))
	assert.Equal(t, 3, want.TakenBy(comes("third", asked), now, lease).Executions)
	assert.Equal(t, holder.Opened(opened, lease), running, "the record itself is a value")
}

func TestAnExpiredRecordStartsFromScratch(t *testing.T) {
	for _, o := range []idempotency.Outcome{success, refusal} {
		expired := holder.Opened(opened, lease).TakenBy(comes("second", asked), ends, lease).Completed(o, ends, retention)
		newcomer := comes("third", other)
		now := ends.Add(retention)
		assert.Equal(t, newcomer.Opened(now, lease), expired.TakenBy(newcomer, now, lease),
			"another intent: nothing of the old one stays, the number of executions neither")
	}
}

func TestAHolderRenewsItsLeaseAndNothingElse(t *testing.T) {
	running := holder.Opened(opened, lease)
	want := running
	want.LeaseEnds = ends.Add(time.Minute).Add(lease)
	assert.Equal(t, want, running.Renewed(ends.Add(time.Minute), lease))
}

func TestAHolderThatGivesUpFreesItsRecordAtOnce(t *testing.T) {
	running := holder.Opened(opened, lease)
	now := opened.Add(time.Second)
	want := running
	want.LeaseEnds = now
	abandoned := running.Abandoned(now)
	assert.Equal(t, want, abandoned, "the intent stays bound")
	assert.Equal(t, idempotency.Vacant, abandoned.Judge(comes("second", asked), now))
	assert.Equal(t, idempotency.Reused, abandoned.Judge(comes("second", other), now))
}

func TestACompletedRecordKeepsItsOutcome(t *testing.T) {
	running := holder.Opened(opened, lease).TakenBy(comes("second", asked), ends, lease)
	for status, o := range map[idempotency.Status]idempotency.Outcome{
		idempotency.Succeeded: {Document: []byte("a view"), Created: "o-1"},
		idempotency.Failed:    {Refusal: "invalid_state", Document: []byte("a problem")},
	} {
		want := running
		want.Status, want.Outcome, want.Request = status, o, ""
		want.CompletedAt, want.ExpiresAt = completed, completed.Add(retention)
		assert.Equal(t, want, running.Completed(o, completed, retention),
			"the retention counts from completion; the request is not needed any more")
	}
}

func TestTokensAreNobodyElses(t *testing.T) {
	seen := map[idempotency.Token]bool{}
	for range 1000 {
		token := idempotency.NewToken()
		require.Regexp(t, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", token)
		require.False(t, seen[token])
		seen[token] = true
	}
}

func TestHowLongADuplicateShouldWait(t *testing.T) {
	running := holder.Opened(opened, lease)
	for name, c := range map[string]struct {
		ends time.Time // of the lease
		now  time.Time
		want time.Duration
	}{
		"at once":                                    {ends, opened, time.Second},
		"while the holder has just begun":            {ends, opened.Add(300 * time.Millisecond), time.Second},
		"as long as the holder has been at work":     {ends, opened.Add(4 * time.Second), 4 * time.Second},
		"half-way, and never longer":                 {ends, opened.Add(15 * time.Second), 15 * time.Second},
		"not beyond the end of the lease":            {ends, opened.Add(20 * time.Second), 10 * time.Second},
		"a second when the lease is all but over":    {ends, ends.Add(-tick), time.Second},
		"a second when the lease is over":            {ends, ends, time.Second},
		"C88: a lease that was over a second ago":    {opened.Add(-time.Second), opened, time.Second},
		"C88: a lease that ends in ten hours":        {opened.Add(10 * time.Hour), opened, time.Second},
		"C88: a lease that ends in a thousand years": {opened.AddDate(1000, 0, 0), opened, time.Second},
		"C88: a lease that ended long ago":           {opened.AddDate(-1000, 0, 0), opened, time.Second},
		"C88: no lease at all":                       {time.Time{}, opened, time.Second},
	} {
		r := running
		r.LeaseEnds = c.ends
		assert.Equal(t, c.want, r.RetryIn(c.now, lease), name)
	}
}

// C88
func TestTheAdvisedWaitIsFromASecondToTheLease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lease := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "lease"))
		r := idempotency.Record{LeaseEnds: time.UnixMicro(rapid.Int64Range(-1e15, 1e16).Draw(t, "ends"))}
		now := time.UnixMicro(rapid.Int64Range(-1e15, 1e16).Draw(t, "now"))
		if rapid.Bool().Draw(t, "near") {
			now = r.LeaseEnds.Add(time.Duration(rapid.Int64Range(-int64(2*lease), int64(2*lease)).Draw(t, "offset")))
		}
		wait := r.RetryIn(now, lease)
		require.GreaterOrEqual(t, wait, time.Second)
		require.LessOrEqual(t, wait, lease)
	})
}

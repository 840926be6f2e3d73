// Package idempotency holds the record of one intent and its state machine: values and pure functions, without a clock
// and without SQL.
package idempotency

import (
	"time"

	"github.com/google/uuid"

	"kakutei/domain/fault"
)

var (
	// ErrInProgress says that a request with this key is running.
	ErrInProgress = fault.New("idempotency_in_progress", fault.SameKey, "a request with this key is running")
	// ErrKeyReused says that the key belongs to a request with another meaning.
	ErrKeyReused = fault.New("idempotency_key_reused", fault.NewKey,
		"this key was used for a different request; use a new key for a new intent")
	// ErrOutcomeUnknown says that nobody knows yet whether the request had its effect.
	ErrOutcomeUnknown = fault.New("outcome_unknown", fault.SameKey,
		"there is no definite answer yet; send the identical request again with the same key")
	// ErrLeaseAlive says that a record cannot be decided by an operator while its holder is alive.
	ErrLeaseAlive = fault.New("lease_alive", fault.SameKey, "the record's holder is alive")
	// ErrNotFound says that there is no record.
	ErrNotFound = fault.New("not_found", fault.AfterFix, "there is no record of this key")
	// ErrLost says that the stored record is not the one that was to be replaced: another holder has it. It never
	// leaves the executor.
	ErrLost = fault.New("lease_lost", fault.SameKey, "another holder has the record")
)

// Status is where a record stands.
type Status string

const (
	// InProgress says that a holder works on the request, or that its outcome is unknown.
	InProgress Status = "IN_PROGRESS"
	// Succeeded says that the outcome is the operation's result.
	Succeeded Status = "SUCCEEDED"
	// Failed says that the outcome is a refusal. It is as final as a success.
	Failed Status = "FAILED"
)

// Token is the fencing token of one execution: who has lost it can commit nothing.
type Token string

// NewToken is random (UUID version 4, RFC 9562): nobody else has or guesses it.
func NewToken() Token { return Token(uuid.NewString()) }

// Outcome is the final answer.
type Outcome struct {
	Refusal  fault.Code // empty for a success
	Document []byte     // as it was, is and will be sent
	Created  string     // id of what the operation created; empty when it created nothing
}

// Record is what is known of one intent. It is a value: a transition returns the next record, Repository.Replace
// stores it. Times are the store's.
type Record struct {
	Scope
	Fingerprint Fingerprint
	Request     Request // until completion; what a recovery executes
	Token       Token
	Status      Status
	Executions  int // runs of the request, from 1; a takeover starts the next
	CreatedAt   time.Time
	LeaseEnds   time.Time // while IN_PROGRESS: after it another holder may take over
	Recoveries  int       // how often the recovery has tried it, since an operator last released it
	RecoverFrom time.Time // the recovery leaves it alone until then; zero: until its lease is over
	Disputed    bool      // something came back from outside that only a person can settle: the recovery leaves it alone
	CompletedAt time.Time // zero while IN_PROGRESS
	ExpiresAt   time.Time // zero while IN_PROGRESS: from then on the record counts as absent
	Outcome     Outcome
}

// Reservation is what a request brings to the record: its name, its meaning and the token of this execution.
type Reservation struct {
	Scope
	Request Request
	Token   Token
}

// Verdict is what a request may do about the record that stands.
type Verdict int

const (
	// Mine says that this token holds the record: execute.
	Mine Verdict = iota
	// Vacant says that the record's lease or its retention is over: take it, then execute.
	Vacant
	// Busy says that another holder is alive.
	Busy
	// Done says that the outcome is known: answer from it.
	Done
	// Reused says that the record belongs to another request.
	Reused
)

// Judge is the whole state machine: what the reservation finds in the stored record at the store's time now. An expired
// record is none at all, and nobody else knows the reservation's token; before every other question comes the
// fingerprint, whatever the record's state.
func (r Record) Judge(n Reservation, now time.Time) Verdict {
	finished := r.Status != InProgress
	switch {
	case r.ExpiredAt(now):
		return Vacant
	case !finished && r.Token == n.Token:
		return Mine
	case !r.Fingerprint.of(n.Scope, n.Request):
		return Reused
	case finished:
		return Done
	case now.Before(r.LeaseEnds):
		return Busy
	default:
		return Vacant
	}
}

// ExpiredAt tells whether the record is past its retention: absent, swept or not.
func (r Record) ExpiredAt(now time.Time) bool {
	return r.Status != InProgress && !now.Before(r.ExpiresAt)
}

// Opened is the record of a reservation that found none.
func (n Reservation) Opened(now time.Time, lease time.Duration) Record {
	return Record{
		Scope: n.Scope, Fingerprint: FingerprintOf(n.Scope, n.Request), Request: n.Request, Token: n.Token,
		Status: InProgress, Executions: 1, CreatedAt: now, LeaseEnds: now.Add(lease),
	}
}

// TakenBy is the vacant record under its next holder. An expired one starts from scratch.
func (r Record) TakenBy(n Reservation, now time.Time, lease time.Duration) Record {
	if r.Status != InProgress {
		return n.Opened(now, lease)
	}
	r.Token, r.LeaseEnds = n.Token, now.Add(lease)
	r.Executions++
	return r
}

// Renewed is the record of a holder who goes on after a doubt: storing it waits for whatever commit of his own is still
// under way, and fails if that was the outcome. It keeps the token, by which he knows his record again should this
// commit get no answer either. So a token that still stands does not tell that a lease that was over still is: who takes
// a record because its lease is over looks again once he has locked it (Repository.Lock).
func (r Record) Renewed(now time.Time, lease time.Duration) Record {
	r.LeaseEnds = now.Add(lease)
	return r
}

// Completed is the record with its outcome. The retention counts from now; the request is not needed any more.
func (r Record) Completed(o Outcome, now time.Time, retention time.Duration) Record {
	r.Status = Succeeded
	if o.Refusal != "" {
		r.Status = Failed
	}
	r.Outcome, r.Request = o, ""
	r.CompletedAt, r.ExpiresAt = now, now.Add(retention)
	return r
}

// Abandoned is the record whose holder gives up before its lease is over: the next retry need not wait.
func (r Record) Abandoned(now time.Time) Record {
	r.LeaseEnds = now
	return r
}

// Dispute is the abandoned record of a holder whose answer from outside only a person can settle.
func (r Record) Dispute(now time.Time) Record {
	r = r.Abandoned(now)
	r.Disputed = true
	return r
}

// Unresolved tells a record that nobody works on and whose outcome nobody knows.
func (r Record) Unresolved(now time.Time) bool {
	return r.Status == InProgress && !now.Before(r.LeaseEnds)
}

// DueSince is from when on the recovery may try an unresolved record.
func (r Record) DueSince() time.Time {
	if r.RecoverFrom.IsZero() {
		return r.LeaseEnds
	}
	return r.RecoverFrom
}

// longestBackoff is between two tries of the recovery at the most.
const longestBackoff = 10 * time.Minute

// Postponed is the unresolved record that the recovery is about to try, under a token of its own: of several recoveries
// one tries, and a late holder is fenced off. The next try is after one interval, then after two, four, …, up to ten
// minutes.
func (r Record) Postponed(t Token, now time.Time, interval time.Duration) Record {
	backoff := longestBackoff
	if interval <= longestBackoff>>r.Recoveries { // shifted far enough it is 0: no doubling overflows
		backoff = interval << r.Recoveries
	}
	r.Token, r.RecoverFrom = t, now.Add(backoff)
	r.Recoveries++
	return r
}

// Released is the unresolved record after an operator's word: a late holder is fenced off, and the recovery tries it at
// its next round.
func (r Record) Released(t Token, now time.Time) Record {
	r.Token, r.RecoverFrom, r.Recoveries, r.Disputed = t, now, 0, false
	return r
}

// RetryIn is how long a duplicate should wait while the holder is alive: as long as the holder has been at work, so that
// a quick answer is fetched quickly and a crashed holder is not asked for in vain too often. At least a second, at most
// until the lease is over, never longer than a lease.
func (r Record) RetryIn(now time.Time, lease time.Duration) time.Duration {
	left := r.LeaseEnds.Sub(now)
	return max(time.Second, min(lease-left, left))
}

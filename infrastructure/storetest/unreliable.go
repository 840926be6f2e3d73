package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/journal"
)

// Fate is what becomes of a commit whose answer is lost.
type Fate string

const (
	// Applied says that the store has done it.
	Applied Fate = "applied"
	// Undone says that the store has not and will not.
	Undone Fate = "undone"
	// Late says that the store does it a moment after it was given up: at ApplyLate.
	Late Fate = "late"
)

var (
	errUndone = errors.New("storetest: the commit never arrived")
	errAway   = errors.New("storetest: the store is away")
)

// Unreliable is a store whose commits can lose their answer and that can be away, and that counts commits. It does so
// from outside: whatever happens to the transaction itself is the store's own doing.
type Unreliable struct {
	work port.UnitOfWork

	mu      sync.Mutex
	commits int
	fates   map[int]Fate // by the number of the commit
	away    int          // from this commit on, if not 0
	late    chan struct{}
	applied chan error
}

// NewUnreliable is reliable until it is told otherwise.
func NewUnreliable(w port.UnitOfWork) *Unreliable {
	return &Unreliable{work: w, fates: map[int]Fate{}, late: make(chan struct{}), applied: make(chan error, 1)}
}

// LoseCommit loses the answer of the n-th commit from now: it ends as port.ErrCommitUnknown.
func (u *Unreliable) LoseCommit(n int, fate Fate) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fates[u.commits+n] = fate
}

// ApplyLate has the commit that is late done now, and says how it ended. There can be one late commit.
func (u *Unreliable) ApplyLate() error {
	close(u.late)
	return <-u.applied
}

// LeaveAfter makes the store unavailable once n commits from now are over, at once if n is 0.
func (u *Unreliable) LeaveAfter(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.away = u.commits + n + 1
}

// Return makes the store available again.
func (u *Unreliable) Return() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.away = 0
}

// Settle forgets which commits were to lose their answer.
func (u *Unreliable) Settle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.fates)
}

// Commits counts the commits that were sent, whatever became of them.
func (u *Unreliable) Commits() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.commits
}

// Do implements port.UnitOfWork.
func (u *Unreliable) Do(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	if err := u.here(); err != nil {
		return err
	}
	if u.next() == Late {
		return u.doLate(ctx, wait, fn)
	}
	var fate Fate
	var told []func()
	err := u.work.Do(ctx, wait, func(tx port.Tx) error {
		fate, told = "", nil
		if err := fn(untold{tx, &told}); err != nil {
			return err
		}
		if fate = u.sent(); fate == Undone {
			return errUndone
		}
		return nil
	})
	if errors.Is(err, errUndone) || err == nil && fate == Applied {
		return fmt.Errorf("%w (%s)", port.ErrCommitUnknown, fate)
	}
	if err == nil {
		for _, tell := range told {
			tell()
		}
	}
	return err
}

// untold keeps back what a posting's commit would tell: an answer that is lost tells nothing.
type untold struct {
	port.Tx
	told *[]func()
}

func (t untold) Journal() journal.Repository { return untoldEntries{t.Tx.Journal(), t.told} }

type untoldEntries struct {
	journal.Repository
	told *[]func()
}

func (r untoldEntries) Post(ctx context.Context, e journal.Entry, stands func(journal.Entry)) error {
	return r.Repository.Post(ctx, e, func(found journal.Entry) {
		*r.told = append(*r.told, func() { stands(found) })
	})
}

// doLate leaves the transaction open, as a server does with a session whose client is gone.
func (u *Unreliable) doLate(ctx context.Context, wait port.Wait, fn func(tx port.Tx) error) error {
	underWay, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		err := u.work.Do(context.WithoutCancel(ctx), wait, func(tx port.Tx) error {
			if err := fn(untold{tx, new([]func())}); err != nil {
				return err
			}
			if _, err := tx.Records().Find(ctx, idempotency.Scope{}); !errors.Is(err, idempotency.ErrNotFound) {
				return err // what waits to be sent goes with the next question, and the server has it
			}
			u.sent()
			close(underWay)
			<-u.late
			return nil
		})
		ended <- err
		u.applied <- err
	}()
	select {
	case <-underWay:
		return fmt.Errorf("%w (%s)", port.ErrCommitUnknown, Late)
	case err := <-ended:
		return err
	}
}

// Read implements port.UnitOfWork.
func (u *Unreliable) Read(ctx context.Context, fn func(tx port.Tx) error) error {
	if err := u.here(); err != nil {
		return err
	}
	return u.work.Read(ctx, fn)
}

func (u *Unreliable) here() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.away != 0 && u.commits+1 >= u.away {
		return port.ErrUnavailable.Because(errAway)
	}
	return nil
}

func (u *Unreliable) next() Fate {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.fates[u.commits+1]
}

func (u *Unreliable) sent() Fate {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.commits++
	return u.fates[u.commits]
}

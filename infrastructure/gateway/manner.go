package gateway

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// manner is how the simulator treats a payment method.
type manner struct {
	declineCode string        // empty: the money is taken
	late        time.Duration // what the first answer takes
	lost        bool          // the first answer is lost
	fails       bool          // the first call fails before any effect
	down        bool          // every call does
}

const slow = "pm_slow_" // followed by whole milliseconds

var (
	manners = map[string]manner{
		"":                      {},
		"pm_ok":                 {},
		"pm_declined":           {declineCode: "card_declined"},
		"pm_insufficient_funds": {declineCode: "insufficient_funds"},
		"pm_lost_answer":        {lost: true},
		"pm_unavailable":        {fails: true},
		"pm_down":               {down: true},
	}
	unknownMethod = manner{declineCode: "unknown_payment_method"}

	declineMessages = map[string]string{
		"card_declined":          "the card was declined",
		"insufficient_funds":     "there is not enough money in the account",
		"unknown_payment_method": "there is no such payment method",
	}
)

// mannerOf knows every method of the contract; any other is declined.
func mannerOf(method string) manner {
	if m, known := manners[method]; known {
		return m
	}
	digits, isSlow := strings.CutPrefix(method, slow)
	ms, err := strconv.ParseUint(digits, 10, 64) // unlike ParseInt it takes no sign
	if !isSlow || err != nil || ms > math.MaxInt64/uint64(time.Millisecond) {
		return unknownMethod
	}
	return manner{late: time.Duration(ms) * time.Millisecond}
}

// first is what the first call under a gateway key books. A call without effect leaves a line all the same: it says
// that the first call is over, and which request the key belongs to.
func (m manner) first(line Line) Line {
	if m.fails || m.down {
		line.Status, line.ChargeID, line.DeclineCode = Failed, "", ""
	}
	return line
}

// hinder comes between the booking and the answer. It holds nothing while it waits.
func (m manner) hinder(ctx context.Context, firstCall bool) error {
	switch {
	case m.down, firstCall && m.fails:
		return ErrUnavailable
	case firstCall && m.lost:
		return ErrLostAnswer
	case firstCall && m.late > 0:
		answer := time.NewTimer(m.late)
		defer answer.Stop()
		select {
		case <-answer.C:
		case <-ctx.Done():
			return fmt.Errorf("gateway: the answer is late: %w", ctx.Err())
		}
	}
	return nil
}

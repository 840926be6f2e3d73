package gormstore

import "time"

// width is how many lanes there are: what is best, as far as it is known. Now and then twice as many, or half as many, are
// tried for a moment. If a transaction takes less time then, from when it comes to its end, it stays at more; at fewer it
// stays as well if that makes no difference, since they take less of the database.
//
// A transaction's time tells how many are served: with as many clients as before, less time for each is more of them in
// all.
type width struct {
	most   int // that there can be
	best   int
	trial  int           // that are tried just now; 0: none
	fewer  bool          // are tried next
	usual  time.Duration // what a transaction takes on the best, in the best round since the last trial; 0: not known
	rounds int           // since the last trial

	changed time.Time // when the number did: who had come before tells nothing of it
	begun   time.Time // this round
	count   int
	sum     time.Duration
}

// fewest lanes there are, if there are as many connections: while one waits for what the database sends or its disk keeps,
// the database works for the other.
const fewest = 2

// A round is so many transactions, or as many as there are in some time.
const (
	roundOf    = 128
	roundAtMin = 8
	roundTime  = 100 * time.Millisecond
)

const (
	// trialEvery is how many rounds there are for one in which something else is tried.
	trialEvery = 10
	// worthwhile is what part of the usual time a transaction on more lanes may take, and bearable on fewer. Every round is a
	// little better or worse by chance, so more lanes have to be better than the best of several.
	worthwhile, bearable = 0.9, 1.05
)

func newWidth(most int) width { return width{most: most, best: min(fewest, most)} }

func (w *width) lanes() int {
	if w.trial > 0 {
		return w.trial
	}
	return w.best
}

// took is told how long a transaction has taken that has ended now.
func (w *width) took(d time.Duration, now time.Time) {
	if now.Add(-d).Before(w.changed) {
		w.begun = now
		return
	}
	w.count++
	w.sum += d
	if w.count < roundOf && (w.count < roundAtMin || now.Sub(w.begun) < roundTime) {
		return
	}
	mean := w.sum / time.Duration(w.count)
	w.count, w.sum, w.begun = 0, 0, now
	enough := worthwhile
	if w.fewer {
		enough = bearable
	}
	switch {
	case w.trial == 0:
		if w.usual == 0 || mean < w.usual {
			w.usual = mean
		}
		if w.rounds++; w.rounds >= trialEvery {
			w.try(now)
		}
	case mean < time.Duration(enough*float64(w.usual)):
		w.best, w.usual = w.trial, mean
		w.try(now) // further that way
	default:
		w.change(0, now)
		w.fewer = !w.fewer
	}
}

func (w *width) try(now time.Time) {
	n := min(2*w.best, w.most)
	if w.fewer {
		n = min(max(w.best/2, fewest), w.best)
	}
	if n == w.best {
		n, w.fewer = 0, !w.fewer
	}
	w.change(n, now)
}

// change tries so many lanes, or ends a trial.
func (w *width) change(trial int, now time.Time) {
	w.trial, w.rounds, w.count, w.sum, w.changed = trial, 0, 0, 0, now
	if trial == 0 {
		w.usual = 0
	}
}

// widen doubles the lanes.
func (w *width) widen(now time.Time) {
	w.best = min(2*w.lanes(), w.most)
	w.change(0, now)
}

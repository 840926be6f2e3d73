package gormstore

import (
	"slices"
	"time"
)

// width is how many lanes there are: what is best, as far as it is known. Now and then twice as many, or half as many, are
// tried in rounds between rounds on the best. More are kept if a transaction takes less time on them, from when it comes to
// its end, each time they are tried; fewer also if that makes no difference, since they take less of the database.
//
// When many stay on a lane for long the others must not wait until that has been found out, and twice as many are tried at
// once. They are kept if transactions end sooner one after the other then: where long is what the database needs, since it
// has much to do or little in its memory, more lanes would have it do more, and take longer.
//
// A transaction's time tells how many are served: with as many clients as before, less time for each is more of them in
// all. And every round is a little better or worse by chance: so rounds are compared with those before and after them, and
// what chance decides leads to few lanes rather than to many.
type width struct {
	most   int // that there can be
	best   int
	trial  int  // that are compared with the best just now; 0: none
	trying bool // they are in use
	fewer  bool // are compared next
	hasty  bool // the comparison is of one trial, for those who stay for long
	rest   int  // so many rounds until then
	failed int  // comparisons in a row that have changed nothing

	usual, tried []time.Duration // what a transaction takes, by rounds of this comparison; in haste the time between two ends

	late []time.Time   // of those who stayed for long, the latest
	deaf int           // so many rounds they are not listened to
	vain int           // hasty comparisons in a row that have changed nothing
	kept time.Duration // the time between two ends in a hasty trial that has just been kept; 0: that is over

	changed  time.Time // when the number did, or a hasty round began: who had come before tells nothing of it
	begun    time.Time // this round
	counting bool      // a hasty one, since somebody has ended
	count    int
	sum      time.Duration
}

// A round is so many transactions, or as many as there are in some time.
const (
	roundOf    = 128
	roundAtMin = 8
	roundTime  = 100 * time.Millisecond
	hastyTime  = 2 * roundTime
)

const (
	// restFor is how many rounds there are between comparisons, and twice as many after each that has changed nothing, up to
	// restDoubled times.
	restFor, restDoubled = 10, 4
	// deafDoubled is how often four times as many rounds go by as before until many who stay for long are listened to again.
	deafDoubled = 3
	// trials is how often something else is tried in a comparison.
	trials = 3
	// worthwhile is what part of the usual time a transaction on more lanes may take, and bearable on fewer.
	worthwhile, bearable = 0.9, 1.05
	// lateAtMost is how many may stay on a lane for long within lateWithin, before there are too few lanes.
	lateAtMost = 4
	lateWithin = time.Second
)

func newWidth(most int) width { return width{most: most, best: 1, rest: restFor} }

func (w *width) lanes() int {
	if w.trying {
		return w.trial
	}
	return w.best
}

// took is told how long a transaction has taken that has ended now, and how long of that it was on its lane.
func (w *width) took(d, onLane time.Duration, now time.Time) {
	switch {
	case w.hasty && now.Add(-onLane).Before(w.changed):
		return // a company that has begun before says nothing of how many end from now on
	case w.hasty && !w.counting: // from an end on, since many may end at once
		w.begun, w.counting = now, true
		return
	case !w.hasty && now.Add(-d).Before(w.changed):
		w.begun = now
		return
	}
	w.count++
	w.sum += d
	length := roundTime
	if w.hasty {
		w.sum, length = max(now.Sub(w.begun), 0), hastyTime
	}
	if w.count < roundOf && (w.count < roundAtMin || now.Sub(w.begun) < length) {
		return
	}
	mean := w.sum / time.Duration(w.count)
	w.count, w.sum, w.begun, w.kept = 0, 0, now, 0
	w.deaf = max(w.deaf-1, 0)
	switch {
	case w.trying:
		w.tried = append(w.tried, mean)
		if w.hasty {
			w.decide(now)
		} else {
			w.use(false, now)
		}
	case w.trial > 0:
		w.usual = append(w.usual, mean)
		if len(w.tried) == trials {
			w.decide(now)
		} else {
			w.use(true, now)
		}
	default:
		if w.rest--; w.rest <= 0 {
			w.compare(mean, now)
		}
	}
}

// compare begins a comparison with a round on the best.
func (w *width) compare(mean time.Duration, now time.Time) {
	n := min(2*w.best, w.most)
	if w.fewer {
		n = max(w.best/2, 1)
	}
	if n == w.best {
		w.fewer, w.rest = !w.fewer, restFor
		return
	}
	w.trial, w.usual, w.tried = n, append(w.usual[:0], mean), w.tried[:0]
	w.use(true, now)
}

// decide ends a comparison. What was kept in haste is compared with what was before, as soon as nobody stays for long any
// more.
func (w *width) decide(now time.Time) {
	hasty := w.hasty
	if !w.isBetter() {
		w.settle(w.best, now)
		w.failed = min(w.failed+1, restDoubled)
		w.rest, w.fewer = restFor<<w.failed, !w.fewer
		if hasty {
			w.vain = min(w.vain+1, deafDoubled)
			w.deaf, w.fewer = 2<<(2*(w.vain-1)), w.best > 1
			if w.fewer {
				w.rest = 1
			}
		}
		return
	}
	if w.trial > w.best {
		w.vain = 0
	}
	w.settle(w.trial, now)
	w.failed, w.rest = 0, 1 // further that way
	if hasty {
		w.kept, w.fewer = w.tried[0], true
	}
}

func (w *width) isBetter() bool {
	switch {
	case w.hasty:
		return float64(w.tried[0]) < worthwhile*float64(w.usual[0])
	case w.fewer:
		return float64(middle(w.tried)) <= bearable*float64(middle(w.usual))
	}
	for i, tried := range w.tried {
		if 2*float64(tried) >= worthwhile*float64(w.usual[i]+w.usual[i+1]) {
			return false
		}
	}
	return true
}

// middle is the median, so that one odd round makes no difference.
func middle(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return (d[(len(d)-1)/2] + d[len(d)/2]) / 2
}

// settle has so many lanes be the best.
func (w *width) settle(lanes int, now time.Time) {
	w.best, w.trial, w.hasty = lanes, 0, false
	w.use(false, now)
}

// use tries what is compared, or uses the best.
func (w *width) use(trial bool, now time.Time) {
	w.trying, w.counting, w.count, w.sum, w.changed = trial, false, 0, 0, now
}

// widen is told of one who stays for long. When there are many of them, there may be too few lanes.
func (w *width) widen(now time.Time) {
	w.late = append(w.late, now)
	w.late = w.late[max(0, len(w.late)-lateAtMost):]
	if len(w.late) < lateAtMost || now.Sub(w.late[0]) > lateWithin {
		return
	}
	w.late = w.late[:0]
	n := min(2*w.best, w.most)
	takesAway := w.trial > 0 && w.trial < w.best // that is not interrupted
	if n == w.best || w.hasty || w.deaf > 0 || takesAway {
		return
	}
	w.trial, w.hasty, w.usual, w.tried = n, true, w.usual[:0], w.tried[:0]
	switch {
	case w.kept > 0:
		w.usual = append(w.usual, w.kept)
		w.use(true, now)
	default:
		w.use(false, now)
	}
}

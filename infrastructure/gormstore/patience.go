package gormstore

import "time"

// patience is how a lane waits for company. Those who have gone together are answered at the same moment, and come back at
// nearly the same: to complete what they have reserved, or with the next payment. Where they do, waiting for them has all go
// together again, in half as many transactions. Where they do not, waiting is lost: so after each time in vain twice as many
// companies as before go without it.
//
// Databases wait in this way for others to commit with (PostgreSQL's commit_delay).
type patience struct {
	expected int       // who went last, and who had come meanwhile
	most     float64   // the largest number of those lately; it is forgotten by and by
	went     time.Time // when they had
	vain     int       // how often in a row it was waited for nothing
	rest     int       // so many companies go without waiting
}

const (
	// vainAtMost is how often what is spared can double.
	vainAtMost = 6
	// patienceAtMost is the longest wait for company.
	patienceAtMost = companyTime / 10
	// remembered is what is left of the most after each company.
	remembered = 0.95
)

// expect says that so many have gone, while so many wait.
func (p *patience) expect(members, waiting int, now time.Time) {
	p.expected, p.went = members+waiting, now
	p.most = max(float64(p.expected), remembered*p.most)
}

// areAll tells whether all wait who were there at once lately: so none of them is elsewhere, at a provider, say.
func (p *patience) areAll(waiting int) bool { return p.most > 0 && float64(waiting) >= p.most }

// isWorthwhile tells whether to wait for as many as can go together, by what each takes. It is asked once for each company.
func (p *patience) isWorthwhile(waiting, atMost int, each time.Duration, now time.Time) bool {
	if waiting >= p.wanted(atMost) || !now.Before(p.until(each)) {
		return false
	}
	if p.rest > 0 {
		p.rest--
		return false
	}
	return true
}

// wanted is how many are waited for.
func (p *patience) wanted(atMost int) int { return min(p.expected, atMost) }

// until is how long they are waited for: as long after the last ones as they will take themselves.
func (p *patience) until(each time.Duration) time.Time {
	return p.went.Add(min(time.Duration(p.expected)*each, patienceAtMost))
}

// waited says what came of it.
func (p *patience) waited(inVain bool) {
	if !inVain {
		p.vain = 0
		return
	}
	p.rest = 1 << p.vain
	p.vain = min(p.vain+1, vainAtMost)
}

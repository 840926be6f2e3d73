package journal

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoDate says that a text is not a real day written YYYY-MM-DD.
var ErrNoDate = errors.New("journal: not a real day written YYYY-MM-DD")

// Date is a civil date: a day as a calendar shows it, in no zone. The zero value is no date.
type Date struct{ text string }

// ParseDate reads exactly YYYY-MM-DD. Error: ErrNoDate.
func ParseDate(text string) (Date, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || day.Format(time.DateOnly) != text {
		return Date{}, fmt.Errorf("%w: %.20q", ErrNoDate, text)
	}
	return Date{text}, nil
}

// DateIn is the day that a moment falls on in a zone.
func DateIn(zone *time.Location, at time.Time) Date { return Date{at.In(zone).Format(time.DateOnly)} }

// String is the date as YYYY-MM-DD: as it was sent, is stored, returned and hashed.
func (d Date) String() string { return d.text }

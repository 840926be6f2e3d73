package journal_test

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones that the tests name, on every machine

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kakutei/domain/journal"
)

// Not parallel: a process has one local zone.
func TestADateIsTheTextThatWasSentWhateverTheLocalZone(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	for _, name := range []string{"UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Kiritimati", "America/Sao_Paulo"} {
		time.Local = zone(t, name)
		rapid.Check(t, func(t *rapid.T) {
			first := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
			text := first.AddDate(0, 0, rapid.IntRange(0, 3_652_058).Draw(t, "days")).Format(time.DateOnly)
			d, err := journal.ParseDate(text)
			require.NoError(t, err)
			require.Equal(t, text, d.String())
		})
		// Where the clocks go forward at midnight there is no 00:00, and the day is a day all the same.
		assert.Equal(t, "2018-11-04", date("2018-11-04").String(), name)
		assert.Equal(t, "2011-12-30", date("2011-12-30").String(), name)
	}
}

func TestWhatIsNoDate(t *testing.T) {
	for _, text := range []string{
		"", "2025-02-29", "1900-02-29", "2025-1-5", "2025-04-31", "2025-13-01", "2025-00-01", "2025-01-00",
		"2025-01-29T00:00:00Z", "2025-01-29 ", "\t2025-01-29", "10000-01-01", "-001-01-01", "２０２５-01-29",
	} {
		d, err := journal.ParseDate(text)
		require.ErrorIs(t, err, journal.ErrNoDate, "%q", text)
		assert.Equal(t, journal.Date{}, d)
	}
}

func TestTheDayOfAPaymentEndsInTheShopsZone(t *testing.T) {
	for _, c := range []struct{ at, zone, day string }{
		{"2026-11-30T15:30:00Z", "Asia/Tokyo", "2026-12-01"},
		{"2026-11-30T14:59:59.999999Z", "Asia/Tokyo", "2026-11-30"},
		{"2026-11-30T15:00:00Z", "Asia/Tokyo", "2026-12-01"},
		{"2026-11-30T15:30:00Z", "UTC", "2026-11-30"},
		{"2026-11-30T15:30:00Z", "America/Los_Angeles", "2026-11-30"},
		{"2026-11-30T07:59:59Z", "America/Los_Angeles", "2026-11-29"},
		{"2026-07-01T06:59:59Z", "America/Los_Angeles", "2026-06-30"}, // summer time: an hour earlier
		{"2026-07-01T07:00:00Z", "America/Los_Angeles", "2026-07-01"},
		{"2026-12-31T10:00:00Z", "Pacific/Kiritimati", "2027-01-01"},
		{"2026-11-30T23:30:00+09:00", "Asia/Tokyo", "2026-11-30"}, // the moment counts, not how it is written
		{"2026-12-01T00:30:00+09:00", "America/Los_Angeles", "2026-11-30"},
	} {
		at, err := time.Parse(time.RFC3339Nano, c.at)
		require.NoError(t, err)
		assert.Equal(t, date(c.day), journal.DateIn(zone(t, c.zone), at), "%s in %s", c.at, c.zone)
	}
}

func date(text string) journal.Date {
	d, err := journal.ParseDate(text)
	if err != nil {
		panic(err)
	}
	return d
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

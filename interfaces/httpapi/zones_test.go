package httpapi_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones come with the test: not every machine has them

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/gormstore/gormtest"
)

// places are zones that are far from each other and from Greenwich, by their cities.
var places = map[string]string{"Tokyo": "Asia/Tokyo", "Los Angeles": "America/Los_Angeles"}

// L8: whatever zone the database thinks it is in, a date stays the text that was sent and an instant is the same text.
func TestTheJournalWhereverTheDatabaseIs(t *testing.T) {
	whereverTheDatabaseIs(t, slices.Concat(journalChecks, bookingChecks)...)
}

// C51, L8: of an order's payment, too.
func TestTheTimeOfAPaymentWhereverTheDatabaseIs(t *testing.T) {
	whereverTheDatabaseIs(t, check{"the same instant is the same text everywhere", sameInstantSameText})
}

func whereverTheDatabaseIs(t *testing.T, checks ...check) {
	t.Helper()
	requireTheProcessWhereItIsSaidToBe(t)
	stores := map[string]store{"memory": inMemory, "a file": onDatabase("SQLite")}
	for city, zone := range places {
		stores[city] = func(t *testing.T) port.UnitOfWork {
			d := gormtest.PostgreSQL(t)
			d.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''`+zone+`''',
				current_database()); END $$`)
			return patiently(t, d)
		}
	}
	for where, fresh := range stores {
		t.Run(where, func(t *testing.T) { suite(t, fresh, checks...) })
	}
}

// requireTheProcessWhereItIsSaidToBe makes sure that a zone in TZ has come through.
func requireTheProcessWhereItIsSaidToBe(t *testing.T) {
	t.Helper()
	said := os.Getenv("TZ")
	if said == "" {
		return // wherever the machine is
	}
	zone, err := time.LoadLocation(said)
	require.NoError(t, err)
	for _, month := range []time.Month{time.January, time.July} {
		_, want := time.Date(2025, month, 1, 0, 0, 0, 0, zone).Zone()
		_, is := time.Date(2025, month, 1, 0, 0, 0, 0, time.Local).Zone()
		require.Equal(t, want, is, "the process is not in %s", said)
	}
}

// L8: the process learns its zone when it starts, so the test starts itself anew in each.
func TestTheJournalWhereverTheProcessIs(t *testing.T) {
	whereverTheProcessIs(t, "TestTheJournalWhereverTheDatabaseIs", "TestThePaymentsDayIsTheShops")
}

// C51, L8.
func TestTheTimeOfAPaymentWhereverTheProcessIs(t *testing.T) {
	whereverTheProcessIs(t, "TestTheTimeOfAPaymentWhereverTheDatabaseIs")
}

func whereverTheProcessIs(t *testing.T, tests ...string) {
	t.Helper()
	for city, zone := range places {
		t.Run(city, func(t *testing.T) {
			elsewhere := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.timeout=5m",
				"-test.run=^("+strings.Join(tests, "|")+")$")
			elsewhere.Env = append(os.Environ(), "TZ="+zone)
			said, err := elsewhere.CombinedOutput()
			require.NoError(t, err, string(said))
			for _, test := range tests {
				assert.Contains(t, string(said), "--- PASS: "+test)
			}
		})
	}
}

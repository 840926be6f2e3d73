package httpapi_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/gormtest"
)

// statements are those that a PostgreSQL server has logged for one database.
type statements struct {
	path, database string
}

// logging has the server log every statement of the database's sessions from now on.
func logging(t *testing.T, d gormtest.Database) statements {
	t.Helper()
	path := os.Getenv("KAKUTEI_TEST_POSTGRES_LOG")
	require.NotEmpty(t, path, "KAKUTEI_TEST_POSTGRES_LOG must name the server's log; `make test` does it")
	d.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET log_statement = ''all''', current_database()); END $$`)
	database, _, _ := strings.Cut(d.URL[strings.LastIndex(d.URL, "/")+1:], "?")
	return statements{path, database}
}

// during are the texts of the statements that were logged while do ran, without the names under which they are prepared.
func (s statements) during(t *testing.T, do func()) (texts []string) {
	t.Helper()
	before, err := os.Stat(s.path)
	require.NoError(t, err)
	do()
	log, err := os.ReadFile(s.path)
	require.NoError(t, err)
	for line := range strings.Lines(string(log[before.Size():])) {
		if _, logged, found := strings.Cut(line, "LOG:  "); found && strings.Contains(line, s.database) {
			_, text, _ := strings.Cut(logged, ": ")
			texts = append(texts, text)
		}
	}
	return texts
}

// Whoever has no right to know whether a thing exists cannot tell it from the time of the answer either: the database is
// asked the same.
func TestWhatIsSomebodyElsesIsLookedForLikeWhatIsNot(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	log := logging(t, d)
	e := open(t, d.Open(t, 1)) // one connection, so that every statement is prepared after the first time
	const entry = `{"companyId":"company-2","sourceDocumentType":"sales_invoice","sourceDocumentId":"inv-1","serviceDate":"2025-01-29","total":5}`
	ofBob := e.send(t, placing().token("demo-bob").key("of-bob")).is(t, http.StatusCreated)
	id, _ := ofBob.member(t, "orderId").(string)
	booked := e.send(t, post("/api/journal-entries/post", entry).token("demo-bob@company-2")).is(t, http.StatusCreated)
	none, err := uuid.NewV7()
	require.NoError(t, err)

	for name, pair := range map[string][2]request{
		"an order":           {get("/api/orders/" + id), get("/api/orders/" + none.String())},
		"an order to pay":    {confirming(id), confirming(none.String())},
		"an order to cancel": {cancelling(id), cancelling(none.String())},
		"an entry":           {get(booked.header.Get("Location")), get("/api/journal-entries/" + none.String())},
		"an entry for others": {
			get(booked.header.Get("Location")).token("demo-alice@company-1"),
			get("/api/journal-entries/" + none.String()).token("demo-alice@company-1"),
		},
		"a key": {
			get("/api/idempotency-keys/of-bob?operation=PlaceOrder"), get("/api/idempotency-keys/none?operation=PlaceOrder"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			somebodys, nobodys := pair[0].with("X-Request-Id", "same"), pair[1].with("X-Request-Id", "same")
			e.send(t, nobodys.key(freshKey())) // whatever is prepared is prepared
			var one, other answer
			first := log.during(t, func() { one = e.send(t, somebodys).isProblemOf(t, http.StatusNotFound) })
			second := log.during(t, func() { other = e.send(t, nobodys).isProblemOf(t, http.StatusNotFound) })
			assert.NotEmpty(t, first)
			assert.Equal(t, second, first)
			assert.Equal(t, other.body, one.body)
			assert.Len(t, one.header, len(other.header))
		})
	}

	t.Run("an entry of another company is not looked for at all", func(t *testing.T) {
		for _, document := range []string{entry, strings.Replace(entry, "inv-1", "inv-2", 1)} {
			asked := log.during(t, func() {
				e.send(t, post("/api/journal-entries/post", document)).isProblem(t, http.StatusForbidden, "forbidden")
			})
			assert.Empty(t, asked)
		}
	})
}

// isProblemOf checks the status of a problem, whatever its code.
func (a answer) isProblemOf(t *testing.T, status int) answer {
	t.Helper()
	code, _ := a.member(t, "code").(string)
	return a.isProblem(t, status, code)
}

package main

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// conflicting is a ground whose database can be told to answer the next times that a statement is run with a conflict. A
// sequence counts them, since it forgets nothing when a transaction is undone.
func conflicting(t *testing.T) (g ground, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	g = groundOn(t, pgtest.Empty(t), func(provider http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				calls.Add(1)
			}
			provider.ServeHTTP(w, r)
		})
	}).with("KAKUTEI_RECOVERY_INTERVAL", "0", "KAKUTEI_SWEEP_INTERVAL", "0")
	g.exec(`CREATE SEQUENCE runs`)
	g.exec(`CREATE TABLE conflicts (code text, first int, last int)`)
	g.exec(`INSERT INTO conflicts VALUES ('00000', 0, 0)`)
	// It costs nothing, so that of a row that was found it is asked before all else.
	g.exec(`CREATE FUNCTION conflict() RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ DECLARE
		run bigint := nextval('runs');
		told conflicts;
	BEGIN
		SELECT * FROM conflicts INTO told;
		IF run BETWEEN told.first AND told.last THEN RAISE EXCEPTION 'a test' USING ERRCODE = told.code; END IF;
		RETURN true;
	END $$`)
	g.exec(`CREATE FUNCTION conflict_in_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM conflict();
		RETURN NEW;
	END $$`)
	return g, calls
}

// conflicts has the runs of the statement from first to last, counted from now, end in a conflict.
func (g ground) conflicts(code string, first, last int) {
	g.t.Helper()
	g.exec(`ALTER SEQUENCE runs RESTART`)
	g.exec(`UPDATE conflicts SET code = $1, first = $2, last = $3`, code, first, last)
}

// runs is how often the statement has been run since conflicts were last planned.
func (g ground) runs() int {
	g.t.Helper()
	return g.number(`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM runs`)
}

// A conflict is nobody's fault and gone when the transaction is run again.
var conflictCodes = map[string]string{"a serialization failure": "40001", "a deadlock": "40P01"}

// The service runs a transaction three times: two conflicts are none to a client, a third one is.
const (
	repeatable = 2
	exhausting = 3
)

// C67: whichever writing statement of a payment meets a conflict, and COMMIT itself, the transaction is repeated, not the
// charge. When it is repeated in vain, the client is told so, and his next request finds everything as it must be.
func TestAConflictInAnyWriteOfAPaymentRepeatsTheTransactionAlone(t *testing.T) {
	const before, atCommit = `CREATE TRIGGER met BEFORE `, `CREATE CONSTRAINT TRIGGER met AFTER `
	const each, late = ` FOR EACH ROW `, ` DEFERRABLE INITIALLY DEFERRED FOR EACH ROW `
	const meet = ` EXECUTE FUNCTION conflict_in_trigger()`
	for name, c := range map[string]struct {
		trigger string
		told    string // when it is exhausted
	}{
		"the record is reserved":   {before + `INSERT ON idempotency_records` + each + `WHEN (NEW.operation = 'ConfirmPayment')` + meet, "unavailable"},
		"the order is marked":      {before + `UPDATE ON orders` + each + `WHEN (NEW.status = 'PAYMENT_PENDING')` + meet, "unavailable"},
		"the reservation's COMMIT": {atCommit + `INSERT ON idempotency_records` + late + `WHEN (NEW.operation = 'ConfirmPayment')` + meet, "unavailable"},
		"the payment is booked":    {before + `INSERT ON journal_entries` + each + meet, "outcome_unknown"},
		"the order is PAID":        {before + `UPDATE ON orders` + each + `WHEN (NEW.status = 'PAID')` + meet, "outcome_unknown"},
		"the outcome is recorded":  {before + `UPDATE ON idempotency_records` + each + `WHEN (NEW.status = 'SUCCEEDED')` + meet, "outcome_unknown"},
		"the completion's COMMIT":  {atCommit + `UPDATE ON orders` + late + `WHEN (NEW.status = 'PAID')` + meet, "outcome_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, calls := conflicting(t)
			r := serving(t, g.env)
			g.exec(c.trigger)
			var payments []*insistence
			for conflict, code := range conflictCodes {
				for _, times := range []int{repeatable, exhausting} {
					p := r.fresh(code+"-"+fmt.Sprint(times, "-"), 1)[0]
					payments = append(payments, p)
					r.meets(g, p, calls, conflict, code, 1, times, c.told)
				}
			}
			g.whole(r, payments...)
			r.stop()
		})
	}
}

// meets pays while the runs of the statement from first on meet so many conflicts.
func (r *running) meets(g ground, p *insistence, calls *atomic.Int64, conflict, code string, first, times int, told string) {
	r.t.Helper()
	calls.Store(0)
	g.conflicts(code, first, first+times-1)
	_, err := p.try(r.t.Context(), r)
	require.NoError(r.t, err)
	assert.GreaterOrEqual(r.t, g.runs(), first+times-1, "%s: the statement is run again", conflict)
	if times == repeatable {
		assert.Equal(r.t, http.StatusOK, p.first.status, "%s: %s", conflict, p.first.body)
		assert.False(r.t, p.first.replayed, "it is its own execution's answer")
		assert.EqualValues(r.t, 1, calls.Load(), "%s repeats the transaction alone", conflict)
		return
	}
	assert.Equal(r.t, http.StatusServiceUnavailable, p.first.status, "%s: %s", conflict, p.first.body)
	assert.Contains(r.t, p.first.body, `"code":"`+told+`"`)
	if told == "unavailable" {
		assert.Zero(r.t, calls.Load(), "nothing was done")
		assert.Zero(r.t, g.number(`SELECT count(*) FROM idempotency_records WHERE status = 'IN_PROGRESS'`), "the key is free")
	}
	final, err := p.try(r.t.Context(), r)
	require.NoError(r.t, err)
	assert.True(r.t, final, "the next request comes through at once")
	assert.LessOrEqual(r.t, calls.Load(), int64(2), "a repeat asks under the same gateway key")
}

// aLookMayConflict has a view stand for a table: looking at a row of it may conflict.
func aLookMayConflict(table string) string {
	return `ALTER TABLE ` + table + ` RENAME TO stored; CREATE VIEW ` + table + ` AS SELECT * FROM stored WHERE conflict()`
}

// C67, of every statement that reads or locks: the statements of a payment that come by are counted first, then each of them
// conflicts in turn. At an entry nobody looks (TestAConflictInAPostingRepeatsIt).
func TestAConflictInAnyReadOfAPaymentRepeatsTheTransactionAlone(t *testing.T) {
	for _, table := range []string{"orders", "idempotency_records"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			g, calls := conflicting(t)
			require.Zero(t, alone(t, g.env, "migrate").code)
			g.exec(aLookMayConflict(table))
			r := serving(t, g.env)
			undisturbed := r.fresh("undisturbed-", 1)[0]
			g.conflicts("00000", 0, 0)
			require.NoError(t, undisturbed.insist(t.Context(), func() *running { return r }))
			reads := g.runs()
			require.NotZero(t, reads)
			t.Logf("a payment looks %d times at a row of %s", reads, table)
			payments := []*insistence{undisturbed}
			for conflict, code := range conflictCodes {
				for first := 1; first <= reads; first++ {
					p := r.fresh(code+"-"+fmt.Sprint(first, "-"), 1)[0]
					payments = append(payments, p)
					r.meets(g, p, calls, conflict, code, first, repeatable, "")
				}
			}
			g.exec(`CREATE OR REPLACE VIEW ` + table + ` AS SELECT * FROM stored`)
			g.whole(r, payments...)
			r.stop()
		})
	}
}

// A posting repeats its one transaction, too, and is booked once; in vain, it is not booked, and the document can be posted
// again.
func TestAConflictInAPostingRepeatsIt(t *testing.T) {
	for name, trigger := range map[string]string{
		"the entry is written": `CREATE TRIGGER met BEFORE INSERT ON journal_entries FOR EACH ROW
			EXECUTE FUNCTION conflict_in_trigger()`,
		"COMMIT": `CREATE CONSTRAINT TRIGGER met AFTER INSERT ON journal_entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
			EXECUTE FUNCTION conflict_in_trigger()`,
		"what stands is looked for": aLookMayConflict("journal_entries"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, _ := conflicting(t)
			r := serving(t, g.env)
			g.exec(trigger)
			for conflict, code := range conflictCodes {
				g.conflicts(code, 1, repeatable)
				assert.Equal(t, http.StatusCreated, r.posted("inv-a-"+code).status, conflict)
				g.conflicts(code, 1, exhausting)
				inVain := r.posted("inv-b-" + code)
				assert.Equal(t, http.StatusServiceUnavailable, inVain.status, inVain.body)
				assert.Contains(t, inVain.body, `"code":"unavailable"`)
				assert.Equal(t, http.StatusCreated, r.posted("inv-b-"+code).status, "it was not booked, and is now")
			}
			assert.Equal(t, 2*len(conflictCodes), g.number(`SELECT count(*) FROM journal_entries`))
			g.rests()
			r.stop()
		})
	}
}

// C74: a default isolation that turns waits into conflicts changes nothing, for payments nor for postings: the service
// begins its transactions as it needs them.
func TestAStricterDefaultIsolationChangesNothingForClients(t *testing.T) {
	for _, level := range []string{"serializable", "repeatable read"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			g := groundOn(t, pgtest.Empty(t))
			g.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''` + level + `''',
				current_database()); END $$`)
			r := serving(t, g.env)
			require.Equal(t, level, g.isolation())
			hot := r.fresh("hot-", 1)[0]
			crowd := []*insistence{hot}
			for range 49 {
				crowd = append(crowd, paymentOf(hot.order, hot.key))
			}
			together(t, crowd, r.eitherWay)
			payments := append(r.fresh("others-", 20), hot)
			together(t, payments, r.inTheEnd)
			g.whole(r, payments...)

			r.posts(50, func(i int) string { return invoice(fmt.Sprint("inv-", i)) }, http.StatusCreated)
			r.posts(50, func(int) string { return invoice("inv-same") }, http.StatusCreated, http.StatusOK)
			assert.Equal(t, 51, g.number(`SELECT count(*) FROM journal_entries WHERE company_id = 'company-1'`))
			for _, line := range g.logged() {
				assert.NotContains(t, line, "could not serialize access", "no transaction is of that level")
			}
			g.rests()
			r.stop()
		})
	}
}

func (g ground) isolation() (level string) {
	g.t.Helper()
	require.NoError(g.t, g.rows.QueryRowContext(g.t.Context(), `SHOW transaction_isolation`).Scan(&level))
	return level
}

// posts sends n documents of company-1 at once, each of which must be answered one of these statuses.
func (r *running) posts(n int, document func(i int) string, want ...int) {
	r.t.Helper()
	each := make([]*insistence, n)
	for i := range each {
		each[i] = &insistence{path: "/api/journal-entries/post", body: document(i)}
	}
	together(r.t, each, func(p *insistence) {
		a, _, err := r.askAs(r.t.Context(), "demo-alice@company-1", p.path, "", p.body)
		if assert.NoError(r.t, err) {
			assert.Contains(r.t, want, a.status, a.body)
		}
	})
}

// C76: two hundred postings whose lines name two accounts in both orders, while sweeps, repeats and payments go on: nobody
// locks in an order that another one reverses.
func TestPostingsInBothOrdersMeetNoDeadlock(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t)).with("KAKUTEI_RETENTION", "1ms", "KAKUTEI_SWEEP_INTERVAL", "5ms",
		"KAKUTEI_LOCK_TIMEOUT", "10s")
	r := serving(t, g.env)
	const a, b = `{"account":"a","side":"debit","amount":110000}`, `{"account":"b","side":"credit","amount":110000}`
	document := func(i int) string {
		if i%2 == 0 {
			return invoice(fmt.Sprint("inv-", i/2*2), a, b)
		}
		return invoice(fmt.Sprint("inv-", i), b, a)
	}
	payments := r.fresh("beside-", 20)
	paid := make(chan struct{})
	go func() {
		defer close(paid)
		for range 5 {
			together(t, payments, r.inTheEnd)
		}
	}()
	for range 2 { // the second time they are repeats
		r.posts(200, document, http.StatusCreated, http.StatusOK)
	}
	<-paid
	assert.Equal(t, 200+len(payments), g.number(`SELECT count(*) FROM journal_entries`))
	for _, p := range payments {
		assert.Equal(t, 1, g.charges(p.order))
	}
	for _, line := range g.logged() {
		assert.NotContains(t, line, "deadlock detected")
	}
	g.agrees()
	g.rests()
	r.stop()
}
